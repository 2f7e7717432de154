/** Turns the gradient of limit * tanh(x / limit) into that of x, in place. */
export function softcapGradient(x: Float32Array, gradient: Float32Array, limit: number): void {
  for (let i = 0; i < gradient.length; i++) gradient[i] *= 1 - Math.tanh(x[i] / limit) ** 2;
}
