/** x <- x + y */
export function add(x: Float32Array, y: Float32Array, count: number): void {
  for (let i = 0; i < count; i++) x[i] += y[i];
}
