/**
 * From `dOut`, the gradient of out = x / rms(x) * weight, those of x (written to `dx`) and of the weight (added to
 * `dWeight` when given).
 */
export function rmsNormGradient(
  x: Float32Array,
  weight: Float32Array,
  dOut: Float32Array,
  dx: Float32Array,
  dWeight: Float32Array | undefined,
  rows: number,
  size: number,
  epsilon: number,
): void {
  for (let row = 0; row < rows; row++) {
    const at = row * size;
    let squares = 0;
    let dot = 0;
    for (let i = 0; i < size; i++) {
      squares += x[at + i] * x[at + i];
      dot += dOut[at + i] * weight[i] * x[at + i];
    }
    const scale = 1 / Math.sqrt(squares / size + epsilon);
    const pull = (dot * scale ** 3) / size;
    for (let i = 0; i < size; i++) {
      if (dWeight) dWeight[i] += dOut[at + i] * x[at + i] * scale;
      dx[at + i] = dOut[at + i] * weight[i] * scale - x[at + i] * pull;
    }
  }
}
