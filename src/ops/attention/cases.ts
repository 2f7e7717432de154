import type { KeyValueType } from "../../backends/operation.ts";
import { gaussian, type OperationCase } from "../operationCase.ts";
import { encodeHeads } from "./keyValue.ts";

/** Largest difference from the reference, relative to the largest value. */
export const tolerance = 5e-6;

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly capacity: number;
  readonly window?: number;
  readonly softcap?: number;
  /** Default 1 / sqrt(headSize); larger ones let single positions win. */
  readonly scale?: number;
  /** How the cache holds keys and values; default as floats. */
  readonly type?: KeyValueType;
  /** Sequence and position of each token. */
  readonly places: readonly (readonly [number, number])[];
}

function prompt(tokens: number, first = 0): [number, number][] {
  return Array.from({ length: tokens }, (_, i) => [0, first + i]);
}

const several = [
  [2, 30],
  [0, 0],
  [1, 17],
  [0, 1],
] as const;

const shapes: readonly Shape[] = [
  { heads: 1, kvHeads: 1, headSize: 16, capacity: 1, places: prompt(1) },
  { heads: 3, kvHeads: 1, headSize: 17, capacity: 4, places: prompt(4) },
  { heads: 9, kvHeads: 3, headSize: 64, capacity: 33, places: prompt(33) },
  { heads: 8, kvHeads: 2, headSize: 20, capacity: 31, places: several },
  { heads: 8, kvHeads: 1, headSize: 96, capacity: 40, places: prompt(5, 7) },
  { heads: 2, kvHeads: 2, headSize: 80, capacity: 64, places: prompt(64) },
  { heads: 4, kvHeads: 4, headSize: 31, capacity: 17, places: prompt(1, 16) },
  // Around the borders of blocks of 64, 128 and 256 positions.
  { heads: 4, kvHeads: 2, headSize: 128, capacity: 400, places: prompt(4, 126) },
  { heads: 2, kvHeads: 1, headSize: 32, capacity: 600, places: prompt(3, 255), scale: 2 },
  { heads: 5, kvHeads: 5, headSize: 33, capacity: 577, places: prompt(2, 575), scale: 1 },
  { heads: 4, kvHeads: 2, headSize: 64, capacity: 16, places: prompt(7), window: 1 },
  { heads: 4, kvHeads: 2, headSize: 64, capacity: 64, places: prompt(8, 1), window: 5 },
  { heads: 2, kvHeads: 1, headSize: 16, capacity: 400, places: prompt(3, 300), window: 128 },
  { heads: 2, kvHeads: 1, headSize: 16, capacity: 400, places: prompt(3, 300), window: 200 },
  { heads: 4, kvHeads: 4, headSize: 48, capacity: 50, places: prompt(3, 40), window: 4096 },
  { heads: 4, kvHeads: 2, headSize: 64, capacity: 300, places: prompt(2, 200), softcap: 50 },
  { heads: 8, kvHeads: 4, headSize: 20, capacity: 31, places: several, softcap: 1, window: 9, scale: 1 },
  // More queries of a group than a tile holds, and more rows.
  { heads: 60, kvHeads: 1, headSize: 16, capacity: 80, places: prompt(3, 70) },
  { heads: 6, kvHeads: 2, headSize: 24, capacity: 150, places: prompt(90, 40), window: 37 },
];

/** Of those, the ones with caches of every type. */
const typed = (["f16", "int8"] as const).flatMap((type) =>
  shapes.filter(({ heads }) => heads > 1).map((shape) => ({ ...shape, type })),
);

function describe(shape: Shape): string {
  const { heads, kvHeads, headSize, capacity, window, softcap, scale, type, places } = shape;
  const sequences = new Set(places.map(([sequence]) => sequence)).size;
  const options = Object.entries({ type, window, softcap, scale }).filter(([, value]) => value !== undefined);
  const last = Math.max(...places.map(([, position]) => position));
  return [
    `${places.length} tokens of ${sequences} sequences up to position ${last} of ${capacity}`,
    `${heads}/${kvHeads} heads of ${headSize}`,
    ...options.map(([name, value]) => `${name} ${value}`),
  ].join(", ");
}

export const cases: readonly OperationCase[] = [...shapes, ...typed].map((shape) => {
  const { heads, kvHeads, headSize, capacity, window = 0, softcap = 0, type = "f32", places } = shape;
  const { scale = 1 / Math.sqrt(headSize) } = shape;
  const tokens = places.length;
  const querySize = heads * headSize;
  const sequences = 1 + Math.max(...places.map(([sequence]) => sequence));
  /** What lies past a sequence's last position is no number: nobody may read it. */
  const cache = (seed: number) => {
    const heads = gaussian(sequences * kvHeads * capacity * headSize, seed);
    for (let place = 0; place < sequences * kvHeads * capacity; place++) {
      const sequence = Math.floor(place / (kvHeads * capacity));
      const seen = places.some(([own, position]) => own === sequence && position >= place % capacity);
      if (!seen) heads.fill(Number.NaN, place * headSize, (place + 1) * headSize);
    }
    const bytes = encodeHeads(type, heads, headSize);
    const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
    padded.set(bytes);
    return new Float32Array(padded.buffer);
  };
  return {
    name: describe(shape),
    tokens,
    inputs: () => ({
      buffers: {
        q: { data: gaussian(tokens * querySize, 15), perToken: querySize },
        keys: { data: cache(16) },
        values: { data: cache(17) },
        positions: { data: Int32Array.from(places, ([, position]) => position), perToken: 1 },
        sequences: { data: Int32Array.from(places, ([sequence]) => sequence), perToken: 1 },
        out: { data: new Float32Array(tokens * querySize), perToken: querySize },
      },
    }),
    operation: ({ q, keys, values, positions, sequences, out }, _, rows) => ({
      op: "attention",
      ...{ q, cache: { type, keys, values, capacity }, positions, sequences, out, rows },
      ...{ heads, kvHeads, headSize, scale, window, softcap },
    }),
    results: ["out"],
  };
});
