/**
 * The space of bit partitions for a machine's product units: all are enumerated, promoted to a unit (equation 5), given
 * a cost in instructions, and pruned with a reason (ADAngel, section 4.3).
 *
 * @module
 */
import type { SimdLevel } from "../backends/wasm/module.ts";
import type { StrategyName } from "../ops/linear/policy.ts";
import type { BitPartition } from "./partition.ts";
import type { PartitionPair } from "./reference.ts";

/** What a machine multiplies in one go. */
export interface ProductUnit {
  readonly name: string;
  /** Most bits of a part of the weights and of the activations. */
  readonly weightBits: number;
  readonly activationBits: number;
  /** Vector instructions for 16 weights by one token: taking a part out of the code, multiplying, adding. */
  readonly cost: number;
  readonly strategy: StrategyName;
}

/** Most bits of weights that bit planes have kernels for: with more, look-ups and counts lose on every build. */
const PLANE_BITS = 4;

/**
 * Units of WebAssembly SIMD. Costs were counted in the kernels, in x64 instructions for a vector of 16 weights.
 *
 * - and + popcnt: 128 products at once, but a popcount is 8 instructions of x64 without AVX-512.
 * - table: swizzles of 16 sums of four activations, in two bytes each, or in one when activations have 4 bits.
 * - dot 7 x 8: `i32x4.relaxed_dot_i8x16_i7x16_add_s`, or the eight instructions that plain SIMD has for it.
 * - dot 16 x 16: `i32x4.dot_i16x8_s`, eight products at once.
 */
export function wasmUnits(simd: SimdLevel, activationBits: number): readonly ProductUnit[] {
  const dot = simd === "relaxed" ? 1 : 8;
  return [
    { name: "and + popcnt", weightBits: 1, activationBits: 1, cost: 11 / 8, strategy: "bitwise" },
    {
      name: "table",
      weightBits: 1,
      activationBits: 8,
      cost: activationBits > 4 ? 2 : 1.4,
      strategy: "table",
    },
    { name: "dot 7 x 8", weightBits: 7, activationBits: 8, cost: 2 + dot, strategy: "padding" },
    { name: "dot 16 x 16", weightBits: 16, activationBits: 16, cost: 8, strategy: "padding-decoded" },
  ];
}

/** A pair of partitions on the unit that it is promoted to. */
export interface Candidate extends PartitionPair {
  readonly unit: ProductUnit;
  /** Partial products. */
  readonly products: number;
  /** Instructions for 16 weights by one token. */
  readonly instructions: number;
  readonly strategy: StrategyName;
  /** Why it needs no kernel; undefined for the ones that have one. */
  readonly pruned?: string;
}

/** Every way to write `bits` as parts, parts in any order. Their order changes shifts only, so it is not told apart. */
export function partitionsOf(bits: number, largest = bits): number[][] {
  if (bits === 0) return [[]];
  const found: number[][] = [];
  for (let part = Math.min(bits, largest); part >= 1; part--) {
    for (const rest of partitionsOf(bits - part, part)) found.push([part, ...rest]);
  }
  return found;
}

/** The smallest unit that takes all parts, equation 5. */
export function promote(
  { weights, activations }: PartitionPair,
  units: readonly ProductUnit[],
): ProductUnit | undefined {
  return units.find(
    (unit) => Math.max(...weights) <= unit.weightBits && Math.max(...activations) <= unit.activationBits,
  );
}

/** All partitions of both operands, those with a kernel first, then the cheapest. */
export function enumerate(
  weightBits: number,
  activationBits: number,
  units: readonly ProductUnit[],
): Candidate[] {
  const all = partitionsOf(weightBits).flatMap((weights) =>
    partitionsOf(activationBits).flatMap((activations): Candidate[] => {
      const unit = promote({ weights, activations }, units);
      if (!unit) return [];
      const products = weights.length * activations.length;
      const strategy = unit.strategy === "padding" && weights.length > 1 ? "split" : unit.strategy;
      return [{ weights, activations, unit, products, instructions: products * unit.cost, strategy }];
    }),
  );
  const best = units.flatMap((unit) => {
    const own = all.filter((each) => each.unit === unit);
    return own.length === 0 ? [] : [own.reduce((a, b) => (isCoarser(b, a) ? b : a))];
  });
  const cheapest = Math.min(...best.map(({ instructions }) => instructions));
  return all
    .map((each) => ({ ...each, pruned: reasonToPrune(each, best, weightBits, cheapest) }))
    .sort(
      (a, b) =>
        Number(a.pruned !== undefined) - Number(b.pruned !== undefined) || a.instructions - b.instructions,
    );
}

/** Fewer products; of as many, the more even parts. */
function isCoarser(a: Candidate, b: Candidate): boolean {
  return a.products < b.products || (a.products === b.products && widest(a) < widest(b));
}

function widest({ weights, activations }: PartitionPair): number {
  return Math.max(...weights) + Math.max(...activations);
}

function reasonToPrune(
  each: Candidate,
  best: readonly Candidate[],
  weightBits: number,
  cheapest: number,
): string | undefined {
  const { unit, products, instructions } = each;
  const kept = best.find((other) => other.unit === unit)!;
  if (each !== kept) {
    return products === kept.products
      ? `as many products of ${unit.name} as ${show(kept)}`
      : `${products} products of ${unit.name} where ${show(kept)} needs ${kept.products}`;
  }
  const lead = `${(instructions / cheapest).toFixed(1)} times the instructions of the cheapest`;
  if (unit.strategy === "padding-decoded" && instructions > cheapest) return lead;
  const planes = unit.strategy === "table" || unit.strategy === "bitwise";
  return planes && weightBits > PLANE_BITS ? lead : undefined;
}

/** (4, 4) x (8), lowest bits first. */
export function show({ weights, activations }: PartitionPair): string {
  const text = (partition: BitPartition) => `(${partition.toReversed().join(", ")})`;
  return `${text(weights)} x ${text(activations)}`;
}
