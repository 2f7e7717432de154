import { measureDistortion } from "../../quantizers/distortion.ts";
import type { Quantizer } from "../../quantizers/quantizer.ts";
import type { PreparedHessian } from "../calibrate/hessian.ts";

/**
 * How much wider than a row's own a scale should be for LDLQ, whose rounding targets carry the errors of other
 * columns beside the weights: the standard deviation of weights of variance 1 with feedback of rounding errors.
 */
export function startingScale(quantizer: Quantizer, { feedbackPower }: PreparedHessian): number {
  const { distortion } = measureDistortion(quantizer, 1, 0);
  return Math.sqrt(1 + distortion * feedbackPower);
}

/**
 * Replaces every row's scale by the one of least proxy loss for its codes, (w H q) / (q H q), and the decoded rows
 * q with it. Weights and decoded rows are [rows, columns]; the Hessian is symmetric.
 */
export function refitScales(
  weights: Float32Array,
  decoded: Float32Array,
  scales: Float32Array,
  hessian: Float32Array,
  columns: number,
): void {
  const product = new Float64Array(columns);
  for (let row = 0; row < scales.length; row++) {
    const w = weights.subarray(row * columns, (row + 1) * columns);
    const q = decoded.subarray(row * columns, (row + 1) * columns);
    multiply(hessian, q, product, columns);
    let [wq, qq] = [0, 0];
    for (let i = 0; i < columns; i++) {
      wq += w[i] * product[i];
      qq += q[i] * product[i];
    }
    // A row of zeros, or inputs that are always zero, leave nothing to fit.
    if (!(qq > 0 && wq > 0)) continue;
    const before = scales[row];
    scales[row] = Math.fround(before * (wq / qq));
    const factor = scales[row] / before;
    for (let i = 0; i < columns; i++) q[i] *= factor;
  }
}

/** out <- H q, four rows of H at a time. */
function multiply(hessian: Float32Array, q: Float32Array, out: Float64Array, n: number): void {
  let i = 0;
  for (; i + 4 <= n; i += 4) {
    const at = i * n;
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let j = 0; j < n; j++) {
      const x = q[j];
      a += hessian[at + j] * x;
      b += hessian[at + n + j] * x;
      c += hessian[at + 2 * n + j] * x;
      d += hessian[at + 3 * n + j] * x;
    }
    out[i] = a;
    out[i + 1] = b;
    out[i + 2] = c;
    out[i + 3] = d;
  }
  for (; i < n; i++) {
    let sum = 0;
    for (let j = 0; j < n; j++) sum += hessian[i * n + j] * q[j];
    out[i] = sum;
  }
}
