import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 1e-6;

/** Tokens, size, deviation of the gates: large ones reach both ends of the activation. */
const shapes = [
  [1, 1, 1],
  [1, 17, 0.01],
  [2, 31, 1],
  [3, 33, 100],
  [4, 576, 5],
  [8, 1408, 1],
  [64, 65, 1],
  [1, 18944, 2],
];

export const cases: readonly OperationCase[] = (["silu", "geluTanh"] as const).flatMap((activation) =>
  shapes.map(
    ([tokens, size, deviation]): OperationCase => ({
      name: `${activation}, ${tokens} x ${size}, gates ${deviation}`,
      tokens,
      inputs: () => ({
        buffers: {
          gate: { data: gaussian(tokens * size, 4, deviation), perToken: size },
          up: { data: gaussian(tokens * size, 5), perToken: size },
          out: { data: new Float32Array(tokens * size), perToken: size },
        },
      }),
      operation: ({ gate, up, out }, _, rows) => ({ op: "gate", gate, up, out, rows, size, activation }),
      results: ["out"],
    }),
  ),
);
