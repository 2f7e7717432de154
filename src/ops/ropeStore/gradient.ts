/**
 * Turns the gradient of rotated heads [rows, heads * headSize] into that of the heads, in place. A rotation's
 * transpose turns back; `rope` has cosines, then sines for each row, as the operation `ropeStore` does.
 */
export function ropeGradient(
  gradient: Float32Array,
  rope: Float32Array,
  rotated: number,
  rows: number,
  heads: number,
  headSize: number,
): void {
  const half = rotated / 2;
  for (let row = 0; row < rows; row++) {
    const table = row * rotated;
    for (let head = 0; head < heads; head++) {
      const at = (row * heads + head) * headSize;
      for (let i = 0; i < half; i++) {
        const [cos, sin] = [rope[table + i], rope[table + half + i]];
        const [a, b] = [gradient[at + i], gradient[at + half + i]];
        gradient[at + i] = a * cos + b * sin;
        gradient[at + half + i] = b * cos - a * sin;
      }
    }
  }
}
