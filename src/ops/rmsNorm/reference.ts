/** x [rows, size] <- x + add; out = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019). */
export function rmsNorm(
  x: Float32Array,
  add: Float32Array | undefined,
  weight: Float32Array,
  out: Float32Array,
  rows: number,
  size: number,
  epsilon: number,
): void {
  for (let row = 0; row < rows; row++) {
    const at = row * size;
    let squares = 0;
    for (let i = at; i < at + size; i++) {
      if (add) x[i] += add[i];
      squares += x[i] * x[i];
    }
    const scale = 1 / Math.sqrt(squares / size + epsilon);
    for (let i = 0; i < size; i++) out[at + i] = x[at + i] * scale * weight[i];
  }
}
