import type { ActivationPrecision } from "../../backends/operation.ts";

export type IntegerPrecision = Exclude<ActivationPrecision, "float">;

/** Activations of a token that share a scale; quantize.as.ts counts on it. */
export const GROUP = 128;

/**
 * The largest integer of each precision, its negative being the smallest. Those of 8 and 4 bits are held as int8; of 16
 * bits two bytes are, q = 256 high + low, each in a row of its own: the partition (8, 8), whose low part is rounded to
 * [-128, 127], so that the largest is 127 * 256 + 127.
 */
export const largestInteger: Readonly<Record<IntegerPrecision, number>> = {
  int16: 32639,
  int8: 127,
  int4: 7,
};

/** Rows of bytes that a token's integers take. */
export function byteRows(precision: ActivationPrecision): number {
  return precision === "int16" ? 2 : 1;
}

/**
 * x [tokens, columns] rounded to integers and back, in the arithmetic of the format: per token and group,
 * scale = max |x| / largest, q = round to even of x * (largest / max |x|), all in float32.
 */
export function roundActivations(
  x: Float32Array,
  columns: number,
  precision: IntegerPrecision,
): Float32Array {
  const largest = largestInteger[precision];
  const rounded = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += columns) {
    for (let start = row; start < row + columns; start += GROUP) {
      const end = Math.min(start + GROUP, row + columns);
      const peak = peakOf(x.subarray(start, end));
      // Below, largest / peak could be infinite.
      const factor = peak > 1e-36 ? Math.fround(largest / peak) : peak * 0;
      const scale = Math.fround(peak / largest);
      for (let i = start; i < end; i++) rounded[i] = scale * roundToEven(Math.fround(x[i] * factor));
    }
  }
  return rounded;
}

/** The largest magnitude; NaN when a value is NaN or infinite, so that no such value is hidden. */
function peakOf(values: Float32Array): number {
  let peak = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) return Number.NaN;
    peak = Math.max(peak, Math.abs(value));
  }
  return peak;
}

/** Ties to even. */
export function roundToEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
