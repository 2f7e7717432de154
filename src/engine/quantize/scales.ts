/**
 * Replaces every row's scale by the one of least proxy loss for its codes, (w H q) / (q H q). Weights w and
 * decoded rows q are [rows, columns]; the Hessian is symmetric.
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
    scales[row] *= wq / qq;
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
