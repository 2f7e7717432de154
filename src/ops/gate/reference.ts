import type { Gate } from "../../backends/operation.ts";

/** x / (1 + e^-x) */
function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}

/** The tanh form of GELU (Hendrycks and Gimpel, 2016). */
function geluTanh(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

/** out = activation(gate) * up (Shazeer, 2020). */
export function gate(
  gates: Float32Array,
  up: Float32Array,
  out: Float32Array,
  count: number,
  activation: Gate["activation"],
): void {
  const activate = activation === "silu" ? silu : geluTanh;
  for (let i = 0; i < count; i++) out[i] = activate(gates[i]) * up[i];
}
