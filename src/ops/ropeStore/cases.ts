import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 1e-6;

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** 0: no rope. */
  readonly rotated: number;
  readonly capacity: number;
  /** Sequence and position of each token. */
  readonly places: readonly (readonly [number, number])[];
}

function prompt(tokens: number, first = 0): [number, number][] {
  return Array.from({ length: tokens }, (_, i) => [0, first + i]);
}

const shapes: readonly Shape[] = [
  { heads: 1, kvHeads: 1, headSize: 16, rotated: 16, capacity: 1, places: [[0, 0]] },
  { heads: 3, kvHeads: 1, headSize: 17, rotated: 16, capacity: 4, places: prompt(4) },
  { heads: 9, kvHeads: 3, headSize: 64, rotated: 64, capacity: 33, places: prompt(33) },
  { heads: 8, kvHeads: 2, headSize: 80, rotated: 32, capacity: 16, places: prompt(5, 11) },
  { heads: 4, kvHeads: 4, headSize: 20, rotated: 2, capacity: 8, places: prompt(7) },
  { heads: 2, kvHeads: 2, headSize: 31, rotated: 6, capacity: 3, places: prompt(2) },
  { heads: 6, kvHeads: 2, headSize: 128, rotated: 128, capacity: 64, places: prompt(64) },
  { heads: 4, kvHeads: 2, headSize: 64, rotated: 0, capacity: 8, places: prompt(3, 5) },
  {
    ...{ heads: 8, kvHeads: 1, headSize: 96, rotated: 48, capacity: 31 },
    places: [
      [2, 30],
      [0, 0],
      [1, 17],
      [0, 1],
    ],
  },
];

function describe({ heads, kvHeads, headSize, rotated, capacity, places }: Shape): string {
  const sequences = new Set(places.map(([sequence]) => sequence)).size;
  return `${places.length} tokens of ${sequences} sequences, ${heads}/${kvHeads} heads of ${headSize}, ${rotated} rotated, capacity ${capacity}`;
}

function ropeTable(tokens: number, rotated: number): Float32Array {
  const angles = gaussian((tokens * rotated) / 2, 9, 3);
  return Float32Array.from({ length: tokens * rotated }, (_, i) => {
    const [row, place] = [Math.floor(i / rotated), i % rotated];
    const angle = angles[(row * rotated) / 2 + (place % (rotated / 2))];
    return place < rotated / 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

export const cases: readonly OperationCase[] = shapes.map((shape) => {
  const { heads, kvHeads, headSize, rotated, capacity, places } = shape;
  const tokens = places.length;
  const [querySize, keySize] = [heads * headSize, kvHeads * headSize];
  const cacheSize = (1 + Math.max(...places.map(([sequence]) => sequence))) * capacity * keySize;
  return {
    name: describe(shape),
    tokens,
    inputs: () => ({
      buffers: {
        q: { data: gaussian(tokens * querySize, 10), perToken: querySize },
        k: { data: gaussian(tokens * keySize, 11), perToken: keySize },
        v: { data: gaussian(tokens * keySize, 12), perToken: keySize },
        ...(rotated > 0 && { rope: { data: ropeTable(tokens, rotated), perToken: rotated } }),
        keys: { data: gaussian(cacheSize, 13) },
        values: { data: gaussian(cacheSize, 14) },
        positions: { data: Int32Array.from(places, ([, position]) => position), perToken: 1 },
        sequences: { data: Int32Array.from(places, ([sequence]) => sequence), perToken: 1 },
      },
    }),
    operation: ({ q, k, v, rope, keys, values, positions, sequences }, _, rows) => ({
      op: "ropeStore",
      ...{ q, k, v, rope, rotated, cache: { type: "f32", keys, values, capacity } },
      ...{ positions, sequences, rows, heads, kvHeads, headSize },
    }),
    results: ["q", "keys", "values"],
  };
});
