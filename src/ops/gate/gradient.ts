import type { Gate } from "../../backends/operation.ts";

/** From `dOut`, the gradient of out = activation(gate) * up, those of gate and up. */
export function gateGradient(
  gates: Float32Array,
  up: Float32Array,
  dOut: Float32Array,
  dGate: Float32Array,
  dUp: Float32Array,
  activation: Gate["activation"],
): void {
  const write = (i: number, value: number, slope: number) => {
    dGate[i] = dOut[i] * up[i] * slope;
    dUp[i] = dOut[i] * value;
  };
  if (activation === "silu") {
    for (let i = 0; i < dOut.length; i++) {
      const x = gates[i];
      const sigmoid = 1 / (1 + Math.exp(-x));
      write(i, x * sigmoid, sigmoid * (1 + x * (1 - sigmoid)));
    }
    return;
  }
  const c = Math.sqrt(2 / Math.PI);
  for (let i = 0; i < dOut.length; i++) {
    const x = gates[i];
    const t = Math.tanh(c * (x + 0.044715 * x ** 3));
    write(i, 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x));
  }
}
