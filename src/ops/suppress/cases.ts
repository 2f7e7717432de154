import { gaussian, type OperationCase } from "../operationCase.ts";

/** Nothing is computed. */
export const tolerance = 0;

const shapes = [
  [1, 1, 1],
  [2, 17, 0],
  [3, 33, 5],
  [8, 576, 18],
  [1, 1410, 352],
];

export const cases: readonly OperationCase[] = shapes.map(([tokens, size, channels]) => ({
  name: `${channels} of ${tokens} x ${size}`,
  tokens,
  inputs: () => ({
    buffers: {
      input: { data: gaussian(tokens * size, 8), perToken: size },
      out: { data: new Float32Array(tokens * size), perToken: size },
    },
  }),
  operation: ({ input, out }, _, rows) => ({ op: "suppress", input, out, rows, size, channels }),
  results: ["out"],
}));
