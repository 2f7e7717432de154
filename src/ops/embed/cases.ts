import { randomWeights, schemes } from "../linear/cases.ts";
import { integers, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 2e-6;

interface Shape {
  readonly tokens: number;
  /** Rows of the table. */
  readonly vocabulary: number;
  readonly columns: number;
  readonly scale: number;
  readonly rotated?: boolean;
}

const shapes: readonly Shape[] = [
  { tokens: 1, vocabulary: 1, columns: 1, scale: 1 },
  { tokens: 2, vocabulary: 17, columns: 17, scale: 1 },
  { tokens: 33, vocabulary: 31, columns: 33, scale: 24, rotated: true },
  { tokens: 4, vocabulary: 100, columns: 576, scale: 1, rotated: true },
  { tokens: 7, vocabulary: 33, columns: 1408, scale: 0.5 },
  { tokens: 64, vocabulary: 48, columns: 64, scale: 1 },
];

export const cases: readonly OperationCase[] = schemes.flatMap((scheme) =>
  shapes.map(
    ({ tokens, vocabulary, columns, scale, rotated }): OperationCase => ({
      name: `${scheme}, ${tokens} of ${vocabulary} x ${columns}, scale ${scale}${rotated ? ", rotated" : ""}`,
      tokens,
      inputs: () => {
        const ids = integers(tokens, vocabulary, 40);
        ids[0] = vocabulary - 1;
        return {
          buffers: {
            ids: { data: ids, perToken: 1 },
            out: { data: new Float32Array(tokens * columns), perToken: columns },
          },
          weights: { table: randomWeights(scheme, vocabulary, columns, 41, rotated ? 41 : undefined) },
        };
      },
      operation: ({ ids, out }, { table }, rows) => ({ op: "embed", table, ids, out, rows, scale }),
      results: ["out"],
    }),
  ),
);
