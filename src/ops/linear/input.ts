import type { LoweringContext } from "../../backends/wasm/backend.ts";
import type { Address, Instruction } from "../../backends/wasm/instruction.ts";
import { QUANTIZE } from "../../backends/wasm/opcodes.ts";
import type { Rotation } from "../../quantizers/hadamard/rotation.ts";
import { byteRows, GROUP, type IntegerPrecision, largestInteger } from "./activations.ts";
import { rotate } from "./rotate.ts";

/** Integer activations: int8 [rows, padded], and per group a scale and the sum; two rows a token where they have 16 bits. */
export interface QuantizedInput {
  readonly q: Address;
  readonly scales: Address;
  readonly sums: Address;
  /** The largest magnitude of a byte. */
  readonly largest: number;
}

/** The input as the weights of one rotation want it. */
export interface PreparedInput {
  readonly x: Address;
  /** Where some of the weights are multiplied as integers. */
  readonly integers?: QuantizedInput;
  readonly steps: readonly Instruction[];
}

/**
 * Every prepared input has scratch memory of its own, by its `index`, so that all are prepared before the first
 * product and the products wait for nothing between them.
 *
 * @param integers the shape and the precision of the integers, where weights read the input so
 */
export function prepareInput(
  input: Address,
  rows: number,
  rotation: Rotation | undefined,
  integers:
    | { readonly columns: number; readonly padded: number; readonly precision: IntegerPrecision }
    | undefined,
  index: number,
  context: LoweringContext,
): PreparedInput {
  const { scratch } = context;
  const steps: Instruction[] = [];
  let x = input;
  if (rotation) {
    x = scratch.shared(`rotated ${index}`, rows * rotation.size * 4);
    steps.push(rotate(input, x, rows, rotation, false, context));
  }
  if (!integers) return { x, steps };
  const { columns, padded, precision } = integers;
  const largest = largestInteger[precision];
  const bytes = rows * byteRows(precision);
  const groups = bytes * Math.ceil(columns / GROUP) * 4;
  const quantized = {
    q: scratch.shared(`activations ${index}`, bytes * padded),
    scales: scratch.shared(`activation scales ${index}`, groups),
    sums: scratch.shared(`activation sums ${index}`, groups),
    largest: Math.min(largest, largestInteger.int8),
  };
  const { q, scales, sums } = quantized;
  const args = [x, rows, columns, padded, q, scales, sums, largest];
  steps.push({ code: QUANTIZE, args, tokenRows: rows });
  return { x, integers: quantized, steps };
}
