/** x <- limit * tanh(x / limit) (Gemma 2). */
export function softcap(x: Float32Array, count: number, limit: number): void {
  for (let i = 0; i < count; i++) x[i] = limit * Math.tanh(x[i] / limit);
}
