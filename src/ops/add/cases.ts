import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 0;

const shapes = [
  [1, 1],
  [1, 17],
  [2, 31],
  [3, 33],
  [4, 576],
  [7, 1408],
  [64, 65],
  [1, 18944],
];

export const cases: readonly OperationCase[] = shapes.map(([tokens, size]) => ({
  name: `${tokens} x ${size}`,
  tokens,
  inputs: () => ({
    buffers: {
      input: { data: gaussian(tokens * size, 1), perToken: size },
      add: { data: gaussian(tokens * size, 2), perToken: size },
    },
  }),
  operation: ({ input, add }, _, rows) => ({ op: "add", input, add, rows, size }),
  results: ["input"],
}));
