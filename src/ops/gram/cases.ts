import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value: the order of float32 sums. */
export const tolerance = 2e-6;

const shapes = [
  [1, 1],
  [3, 7],
  [1, 17],
  [5, 31],
  [64, 33],
  [300, 64],
  [7, 100],
  [33, 576],
];

export const cases: readonly OperationCase[] = shapes.flatMap(([tokens, size]) =>
  [false, true].map((weighted) => ({
    name: `${tokens} x ${size}${weighted ? ", weighted" : ""}`,
    tokens,
    inputs: () => ({
      buffers: {
        input: { data: gaussian(tokens * size, 1) },
        sums: { data: gaussian(size * size, 2) },
        ...(weighted && { weights: { data: gaussian(tokens, 3).map((value) => value * value) } }),
      },
    }),
    operation: ({ input, sums, weights }, _, rows) => ({ op: "gram", input, weights, sums, rows, size }),
    results: ["sums"],
  })),
);
