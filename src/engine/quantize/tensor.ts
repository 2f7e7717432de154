import type { StoredScheme } from "../../checkpoint/quantization.ts";
import { rotateRows, rotationFor } from "../../quantizers/hadamard/rotation.ts";
import type { QuantizedMatrix } from "../../quantizers/quantizer.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";

/**
 * Quantizes some rows [rows, columns] of a weight without calibration: rotates the input side, then rounds.
 * A pure function of its arguments; rows may be cut anywhere at multiples of the quantizer's `blockRows`.
 */
export function quantizeRows(
  weights: Float32Array,
  rows: number,
  columns: number,
  { scheme, rotation }: Pick<StoredScheme, "scheme" | "rotation">,
): QuantizedMatrix {
  const rotated =
    rotation === null ? weights : rotateRows(weights, rows, columns, rotationFor(columns, rotation));
  return quantizerFor(parseScheme(scheme)).encode(rotated, rows, columns);
}
