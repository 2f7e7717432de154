import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 2e-6;

/** Tokens, size, deviation of the input: tiny ones let epsilon count. */
const shapes = [
  [1, 1, 1],
  [2, 17, 1],
  [3, 31, 1e-4],
  [4, 33, 1e3],
  [5, 576, 1],
  [7, 1408, 0],
  [33, 64, 1],
  [64, 20, 1],
  [1, 18944, 3],
];

export const cases: readonly OperationCase[] = [false, true].flatMap((residual) =>
  shapes.map(
    ([tokens, size, deviation]): OperationCase => ({
      name: `${tokens} x ${size}, input ${deviation}${residual ? ", residual added" : ""}`,
      tokens,
      inputs: () => ({
        buffers: {
          input: { data: gaussian(tokens * size, 6, deviation), perToken: size },
          ...(residual && { add: { data: gaussian(tokens * size, 7, deviation), perToken: size } }),
          weight: { data: gaussian(size, 8) },
          out: { data: new Float32Array(tokens * size), perToken: size },
        },
      }),
      operation: ({ input, add, weight, out }, _, rows) => ({
        ...{ op: "rmsNorm", input, add, weight, out, rows, size, epsilon: 1e-5 },
      }),
      results: ["out", "input"],
    }),
  ),
);
