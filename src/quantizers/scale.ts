/**
 * The scale of a row.
 *
 * @module
 */
import { rootMeanSquare } from "./quantizer.ts";

/**
 * Scales tried for a row, as factors of the best one for a Gaussian of the row's mean square: heavy-tailed rows
 * want larger ones, short rows any.
 */
const factors = [0.85, 0.95, 1, 1.05, 1.15, 1.3, 1.5];

/** What rounding `row / scale` gives: the inner products of the result q with the row and with itself. */
export interface Correlation {
  /** <row, q> */
  readonly product: number;
  /** <q, q> */
  readonly power: number;
}

/**
 * Of several scales, each refitted to the codes it gives by least squares, the one with the least squared error;
 * 1 for a row of zeros.
 *
 * @param deviation standard deviation, in units of the codebook, of the Gaussian it is best for.
 */
export function leastSquaresScale(
  row: Float32Array,
  deviation: number,
  correlate: (inverseScale: number) => Correlation,
): number {
  const start = rootMeanSquare(row) / deviation;
  if (!(start > 0)) return 1;
  let best = start;
  let mostExplained = -1;
  for (const factor of factors) {
    const { product, power } = correlate(1 / (start * factor));
    // |w|^2 - <w, q>^2 / |q|^2 is the error left by the scale <w, q> / |q|^2.
    const explained = (product * product) / power;
    if (explained > mostExplained) {
      mostExplained = explained;
      best = product / power;
    }
  }
  return best;
}
