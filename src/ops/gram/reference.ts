/** sums [size, size] += x^T diag(weights) x over the rows of x [rows, size], upper triangle (column >= row) only. */
export function gram(
  x: Float32Array,
  weights: Float32Array | undefined,
  sums: Float32Array,
  rows: number,
  size: number,
): void {
  for (let i = 0; i < size; i++) {
    for (let j = i; j < size; j++) {
      let sum = 0;
      for (let row = 0; row < rows; row++) {
        sum += (weights ? weights[row] : 1) * x[row * size + i] * x[row * size + j];
      }
      sums[i * size + j] += sum;
    }
  }
}
