/**
 * The codes of the trellis: what two weights a state stands for. All are small integers times a unit, so that
 * integer kernels are exact; sums and entries stay within 7 bits and a sign at -63 to 63.
 *
 * @module
 */
import { STATE_BITS } from "./trellis.ts";

export type TrellisFamily = "tcq" | "tcq-s";

/** A code by state. */
export interface TrellisCode {
  readonly family: TrellisFamily;
  /** Bits per weight, in half steps. */
  readonly rate: number;
  /** Two integers per state. */
  readonly pairs: Int8Array;
  /** What 1 stands for, in standard deviations of a row. */
  readonly unit: number;
}

/**
 * The swizzle-sum code: with all arithmetic on 16 bits, h = (x ^ (x >> spread)) * factor, h ^= h >> fold; then each
 * byte of h, the low one first, is a weight: low[its low nibble] + high[its high nibble].
 */
export interface SwizzleSum {
  readonly spread: number;
  readonly factor: number;
  readonly fold: number;
  /** 16 integers, antisymmetric: low[15 - i] = -low[i]. */
  readonly low: Int8Array;
  readonly high: Int8Array;
  readonly unit: number;
}

/**
 * The paper's table code (section C.3.1): with h = x (x + 1), entry (h >> 15 - tableBits) mod 2^tableBits of a
 * table of pairs, its first value negated when bit 15 of h is set.
 */
export interface TableCode {
  readonly tableBits: number;
  /** 2^tableBits pairs. */
  readonly table: Int8Array;
  readonly unit: number;
}

/** The code of a family at a rate of 1.5 to 5 bits in half steps, written out for all 65,536 states. */
export function trellisCode(family: TrellisFamily, rate: number): TrellisCode {
  if (family === "tcq-s") return swizzleSumCode(rate, swizzleSum(rate));
  const pairs = new Int8Array(2 << STATE_BITS);
  const { tableBits, table, unit } = tableCode(rate);
  for (let x = 0; x < 1 << STATE_BITS; x++) {
    const h = Math.imul(x, x + 1);
    const entry = (h >>> (15 - tableBits)) & ((1 << tableBits) - 1);
    pairs[2 * x] = h & 0x8000 ? -table[2 * entry] : table[2 * entry];
    pairs[2 * x + 1] = table[2 * entry + 1];
  }
  return { family, rate, pairs, unit };
}

/** A swizzle-sum code written out for all states. */
export function swizzleSumCode(
  rate: number,
  { spread, factor, fold, low, high, unit }: SwizzleSum,
): TrellisCode {
  const pairs = new Int8Array(2 << STATE_BITS);
  for (let x = 0; x < 1 << STATE_BITS; x++) {
    const product = Math.imul(x ^ (x >> spread), factor) & 0xffff;
    const h = product ^ (product >> fold);
    pairs[2 * x] = low[h & 15] + high[(h >> 4) & 15];
    pairs[2 * x + 1] = low[(h >> 8) & 15] + high[h >> 12];
  }
  return { family: "tcq-s", rate, pairs, unit };
}

type SwizzleSumRow = readonly [
  spread: number,
  factor: number,
  fold: number,
  unit: number,
  low: readonly number[],
  high: readonly number[],
];

/**
 * By rate; of the tables the upper halves. Found by random search for the least distortion of tail-biting
 * sequences (`bench/tcq-tune.ts`).
 */
const swizzleSums: Readonly<Record<number, SwizzleSumRow>> = {
  1.5: [8, 9159, 8, 0.042523, [1, 5, 7, 13, 11, 12, 20, 31], [3, 3, 7, 11, 12, 17, 20, 31]],
  2: [9, 2143, 9, 0.043516, [1, 3, 9, 10, 12, 22, 22, 31], [0, 3, 6, 9, 12, 18, 22, 31]],
  2.5: [12, 16883, 9, 0.047798, [3, 3, 5, 10, 10, 15, 18, 31], [3, 0, 8, 10, 12, 17, 21, 31]],
  3: [9, 2143, 9, 0.047136, [2, 2, 7, 10, 13, 16, 22, 31], [1, 2, 7, 10, 13, 17, 22, 31]],
  3.5: [5, 55183, 10, 0.051097, [2, 4, 6, 10, 13, 15, 21, 31], [1, 3, 9, 8, 12, 15, 20, 31]],
  4: [2, 58367, 10, 0.054327, [1, 4, 7, 9, 13, 16, 21, 29], [3, 2, 6, 7, 12, 16, 21, 32]],
  4.5: [1, 52011, 11, 0.054629, [1, 5, 7, 9, 13, 15, 22, 31], [1, 3, 7, 10, 13, 17, 21, 31]],
  5: [1, 4099, 7, 0.060943, [-1, 4, 6, 11, 13, 15, 22, 30], [1, 5, 7, 9, 12, 13, 18, 32]],
};

/** The constants of the swizzle-sum code at a rate. */
export function swizzleSum(rate: number): SwizzleSum {
  const [spread, factor, fold, unit, low, high] = swizzleSums[rate];
  return { spread, factor, fold, unit, low: bothHalves(low), high: bothHalves(high) };
}

function bothHalves(upper: readonly number[]): Int8Array {
  return Int8Array.from([...upper.map((value) => -value).reverse(), ...upper]);
}

/** By rate, the table's bits and the unit of least distortion. From 3.5 bits on 11 bits gain 2 to 40% over 9. */
const tables: Readonly<Record<number, readonly [bits: number, unit: number]>> = {
  1.5: [9, 0.047183],
  2: [9, 0.0517],
  2.5: [9, 0.052202],
  3: [9, 0.05421],
  3.5: [11, 0.065945],
  4: [11, 0.07018],
  4.5: [11, 0.07018],
  5: [11, 0.07018],
};

/**
 * The table code at a rate. The table is a Fibonacci spiral stretched to Gaussian density and folded to the right
 * half-plane: as good as k-means centroids, and it ships as these few lines. No entry lies within 1e-5 of a rounding
 * boundary, so it is the same in every engine.
 */
export function tableCode(rate: number): TableCode {
  const [tableBits, unit] = tables[rate];
  const spiral = gaussianSpiral(1 << tableBits);
  const largest = spiral.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return { tableBits, unit, table: Int8Array.from(spiral, (value) => Math.round((63 * value) / largest)) };
}

/** Pairs spread evenly over the right half of a unit Gaussian: equal steps of probability, golden-ratio angles. */
export function gaussianSpiral(count: number): Float64Array {
  const golden = (Math.sqrt(5) - 1) / 2;
  const pairs = new Float64Array(2 * count);
  for (let i = 0; i < count; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - (i + 0.5) / count));
    const angle = (((i * golden) % 1) - 0.5) * Math.PI;
    pairs[2 * i] = radius * Math.cos(angle);
    pairs[2 * i + 1] = radius * Math.sin(angle);
  }
  return pairs;
}
