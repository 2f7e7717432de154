import type { Gate } from "../../backends/operation.ts";

/** An activation's value and slope at x. */
type Curve = (x: number) => readonly [value: number, slope: number];

const silu: Curve = (x) => {
  const sigmoid = 1 / (1 + Math.exp(-x));
  return [x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))];
};

const geluTanh: Curve = (x) => {
  const c = Math.sqrt(2 / Math.PI);
  const t = Math.tanh(c * (x + 0.044715 * x ** 3));
  return [0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)];
};

/** From `dOut`, the gradient of out = activation(gate) * up, those of gate and up. */
export function gateGradient(
  gates: Float32Array,
  up: Float32Array,
  dOut: Float32Array,
  dGate: Float32Array,
  dUp: Float32Array,
  activation: Gate["activation"],
): void {
  const curve = activation === "silu" ? silu : geluTanh;
  for (let i = 0; i < dOut.length; i++) {
    const [value, slope] = curve(gates[i]);
    dGate[i] = dOut[i] * up[i] * slope;
    dUp[i] = dOut[i] * value;
  }
}
