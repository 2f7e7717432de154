/**
 * Products of plain arrays on a backend.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { LinearHandle, Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";

/** output [rows, weight.rows] = input [rows, weight.columns] . weight^T, in floats */
export function productOperation(input: Slot, rows: number, weight: LinearHandle, output: Slot): Operation {
  return {
    op: "linear",
    input,
    weights: [weight],
    biases: [undefined],
    outputs: [output],
    rows,
    activations: "float",
  };
}

/** input [rows, weight.columns] . weight^T */
export async function product(
  backend: Backend,
  values: Float32Array,
  rows: number,
  weight: LinearHandle,
): Promise<Float32Array> {
  const input = backend.reserve(values.byteLength);
  const output = backend.reserve(rows * weight.rows * 4);
  backend.upload(input, values);
  const program = backend.record([productOperation(input, rows, weight, output)]);
  await backend.run(program);
  const result = await backend.readFloats(output, rows * weight.rows);
  program.free();
  backend.free(input);
  backend.free(output);
  return result;
}

/** Values [rows, columns] as a weight. */
export function loadValues(
  backend: Backend,
  values: Float32Array,
  rows: number,
  columns: number,
): Promise<LinearHandle> {
  const readRows = async (start: number, end: number) => values.subarray(start * columns, end * columns);
  return backend.loadLinear({ scheme: "f32", rows, columns, readRows });
}

/** Columns and rows of a tile: what is read and written lies in the first-level cache. */
const TILE = 32;

/** [rows, columns] to [columns, rows]. */
export function transpose(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let top = 0; top < rows; top += TILE) {
    const bottom = Math.min(rows, top + TILE);
    for (let left = 0; left < columns; left += TILE) {
      const right = Math.min(columns, left + TILE);
      for (let i = top; i < bottom; i++) {
        for (let j = left; j < right; j++) result[j * rows + i] = values[i * columns + j];
      }
    }
  }
  return result;
}
