/** sums [size, size] += x^T x over the rows of x [rows, size], upper triangle (column >= row) only. */
export function gram(x: Float32Array, sums: Float32Array, rows: number, size: number): void {
  for (let i = 0; i < size; i++) {
    for (let j = i; j < size; j++) {
      let sum = 0;
      for (let row = 0; row < rows; row++) sum += x[row * size + i] * x[row * size + j];
      sums[i * size + j] += sum;
    }
  }
}
