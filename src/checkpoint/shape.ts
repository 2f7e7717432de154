import { UsageError } from "../errors.ts";

/** Number of elements, or undefined when a dimension is no count or the product exceeds 2^53. */
export function elementCount(shape: readonly number[]): number | undefined {
  let count = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) return undefined;
    count *= size;
  }
  return Number.isSafeInteger(count) ? count : undefined;
}

/** Number of elements of a shape that was checked. */
export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Rows of a tensor as `Tensor.readRows` counts them: a scalar or vector has one row per element. */
export function rowLayout(shape: readonly number[]): { rows: number; rowSize: number } {
  if (shape.length === 0) return { rows: 1, rowSize: 1 };
  let rowSize = 1;
  for (let i = 1; i < shape.length; i++) rowSize *= shape[i];
  return { rows: shape[0], rowSize };
}

/** Checks a `readRows` request and returns where its values go. */
export function rowTarget(
  name: string,
  shape: readonly number[],
  start: number,
  end: number,
  target?: Float32Array,
): { rowSize: number; out: Float32Array } {
  const { rows, rowSize } = rowLayout(shape);
  if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= rows)) {
    throw new UsageError(
      `${name}: rows [${start}, ${end}) of a tensor of ${rows} rows; ask within its shape`,
    );
  }
  const count = (end - start) * rowSize;
  if (target !== undefined && target.length < count) {
    throw new UsageError(`${name}: a target of ${target.length} values for ${count}; pass a larger one`);
  }
  return { rowSize, out: target?.subarray(0, count) ?? new Float32Array(count) };
}
