import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 1e-6;

/** Tokens, size, limit, deviation of the input: small ones stay linear, large ones saturate. */
const shapes = [
  [1, 1, 30, 1],
  [1, 17, 30, 0.01],
  [2, 31, 50, 100],
  [3, 33, 1, 1],
  [5, 576, 30, 20],
  [64, 65, 15, 1e6],
  [1, 18944, 30, 10],
];

export const cases: readonly OperationCase[] = shapes.map(([tokens, size, limit, deviation]) => ({
  name: `${tokens} x ${size}, limit ${limit}, input ${deviation}`,
  tokens,
  inputs: () => ({
    buffers: { input: { data: gaussian(tokens * size, 3, deviation), perToken: size } },
  }),
  operation: ({ input }, _, rows) => ({ op: "softcap", input, rows, size, limit }),
  results: ["input"],
}));
