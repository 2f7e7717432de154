import type { Tensor } from "../../src/checkpoint/checkpoint.ts";

/** Sum of all values, and sum weighted by position, both in float64: tells values and order apart. */
export async function checksum(
  tensor: Tensor,
): Promise<{ shape: readonly number[]; sum: number; weighted: number }> {
  const values = await tensor.readRows(0, tensor.shape[0]);
  let sum = 0;
  let weighted = 0;
  for (let i = 0; i < values.length; i++) {
    sum += values[i];
    weighted += values[i] * ((i % 97) - 48);
  }
  return { shape: tensor.shape, sum, weighted };
}
