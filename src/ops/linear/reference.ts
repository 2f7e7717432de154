/** y [rows, n] = x [rows, k] . w [n, k]^T + bias [n] */
export function linear(
  x: Float32Array,
  w: Float32Array,
  bias: Float32Array | undefined,
  y: Float32Array,
  rows: number,
  n: number,
  k: number,
): void {
  for (let i = 0; i < n; i++) {
    const weights = w.subarray(i * k, (i + 1) * k);
    for (let row = 0; row < rows; row++) {
      const at = row * k;
      // Four sums let the engine overlap the additions.
      let [a, b, c, d] = [0, 0, 0, 0];
      let j = 0;
      for (; j + 4 <= k; j += 4) {
        a += x[at + j] * weights[j];
        b += x[at + j + 1] * weights[j + 1];
        c += x[at + j + 2] * weights[j + 2];
        d += x[at + j + 3] * weights[j + 3];
      }
      for (; j < k; j++) a += x[at + j] * weights[j];
      y[row * n + i] = a + b + (c + d) + (bias ? bias[i] : 0);
    }
  }
}
