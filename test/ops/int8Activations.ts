import type { LinearWeights } from "../../src/backends/backend.ts";
import { linear } from "../../src/ops/linear/reference.ts";
import type { OperationCase } from "../../src/ops/operationCase.ts";
import { quantizerFor } from "../../src/quantizers/registry.ts";
import { parseScheme } from "../../src/quantizers/scheme.ts";

/** Activations that share a scale. */
const group = 128;

/** Whether a backend multiplies the scheme with int8 activations; others keep them float. */
export function isInteger(scheme: string): boolean {
  return parseScheme(scheme).family !== "float";
}

/**
 * x [tokens, columns] rounded to int8 and back, in the arithmetic of the format: per token and group of 128,
 * scale = max |x| / 127, q = round to even of x * (127 / max |x|), all in float32.
 */
export function roundActivations(x: Float32Array, columns: number): Float32Array {
  const rounded = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += columns) {
    for (let start = row; start < row + columns; start += group) {
      const end = Math.min(start + group, row + columns);
      const peak = x.subarray(start, end).reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
      const inverse = peak > 0 ? Math.fround(127 / peak) : 0;
      const scale = Math.fround(peak / 127);
      for (let i = start; i < end; i++) rounded[i] = scale * roundToEven(Math.fround(x[i] * inverse));
    }
  }
  return rounded;
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** What a linear case gives when activations of integer products are rounded to int8. */
export async function int8Model(operationCase: OperationCase): Promise<Record<string, Float32Array>> {
  const { buffers, weights = {} } = operationCase.inputs();
  const { tokens } = operationCase;
  const input = buffers.input.data as Float32Array;
  const results: Record<string, Float32Array> = {};
  for (const [i, name] of operationCase.results.entries()) {
    const weight = weights[`w${i}`];
    const x = input.slice();
    if ("rotation" in weight) weight.rotation?.apply(x);
    const read = isInteger(weight.scheme) ? roundActivations(x, weight.columns) : x;
    results[name] = new Float32Array(tokens * weight.rows);
    const bias = buffers[`bias${i}`]?.data as Float32Array | undefined;
    linear(read, await decoded(weight), bias, results[name], tokens, weight.rows, weight.columns);
  }
  return results;
}

async function decoded(weight: LinearWeights): Promise<Float32Array> {
  if ("readRows" in weight) return weight.readRows(0, weight.rows);
  return quantizerFor(parseScheme(weight.scheme)).decode(weight);
}
