/**
 * The planner's answer as data.
 *
 * @module
 */
import type { Configuration } from "./frontier.ts";
import { totalOf } from "./lagrangian.ts";
import { fusibles, setKey } from "./partitions.ts";
import type { Problem } from "./problem.ts";
import { type Estimates, type Program, timings } from "./program.ts";
import { idealBits, idealLoss } from "./theorem31.ts";

/** Layers stored and multiplied as one matrix (or one layer alone), and the quantizer they take. */
export interface Choice {
  readonly layers: readonly string[];
  readonly option: string;
}

export interface Plan {
  /** Predicted loss: the sum over layers. */
  readonly objective: number;
  /** No plan within the budget has less predicted loss. */
  readonly bound: number;
  /** (objective - bound) / objective; where measured losses are below 0, relative to the larger of both in size. */
  readonly gap: number;
  /** In the order of the problem's layers. */
  readonly choice: readonly Choice[];
  /** Bits per weight, averaged over all weights. */
  readonly bits: number;
  readonly bytes: number;
  /** Predicted time with overhead; absent where costs do not tell. */
  readonly seconds?: number;
  /** What ideal Gaussian quantizers would reach with the same bits (Theorem 3.1). */
  readonly idealObjective: number;
  /** Loss from quantizers short of the distortion-rate bound. objective = idealObjective + both gaps. */
  readonly distortionGap: number;
  /** Loss from bits that differ from the ideal allocation. */
  readonly allocationGap: number;
}

/** Words a solution as a plan, with its sizes, its time and its gaps to Theorem 3.1. */
export function assemble(
  problem: Problem,
  { bits }: Estimates,
  program: Program,
  configurations: readonly Configuration[],
  proof: { readonly objective: number; readonly bound: number; readonly gap: number },
): Plan {
  const { layers, options, budget } = problem;
  const optionOf = new Int32Array(layers.length);
  const taken = configurations.flatMap(({ items }) => items.map(({ set }) => program.sets[set]));
  for (const { items } of configurations) {
    for (const { set, option } of items) for (const layer of program.sets[set]) optionOf[layer] = option;
  }
  const timed = "seconds" in budget ? { sets: taken, seconds: undefined } : fuse(problem, optionOf);
  const sets = timed?.sets ?? taken;
  const perLayer = Float64Array.from(layers, ({ weights }, i) => bits[i][optionOf[i]] / weights);
  const size = layers.reduce((sum, _, i) => sum + bits[i][optionOf[i]], 0);
  const weights = layers.reduce((sum, layer) => sum + layer.weights, 0);
  const least = bits.reduce((min, row, i) => Math.min(min, Math.min(...row) / layers[i].weights), Infinity);
  // A budget of seconds allows no particular size: compare with ideal quantizers of this plan's own.
  const allowed = "bits" in budget ? budget.bits * weights : size;
  const idealObjective = idealLoss(layers, idealBits(layers, allowed, least));
  const shannon = idealLoss(layers, perLayer);
  const seconds = "seconds" in budget ? totalOf(configurations).cost : timed?.seconds;
  return {
    ...proof,
    choice: [...sets]
      .sort((a, b) => a[0] - b[0])
      .map((set) => ({
        layers: set.map((layer) => layers[layer].name),
        option: options[optionOf[set[0]]].name,
      })),
    bits: size / weights,
    bytes: Math.ceil(size / 8),
    ...(seconds !== undefined && { seconds: seconds + (problem.overheadSeconds ?? 0) }),
    idealObjective,
    distortionGap: proof.objective - shannon,
    allocationGap: shannon - idealObjective,
  };
}

/**
 * A budget of bits leaves fusion open: takes the fastest way to fuse layers of equal option. Undefined where costs do
 * not cover the layers with the options they have.
 */
function fuse(problem: Problem, optionOf: Int32Array): { sets: number[][]; seconds: number } | undefined {
  const secondsOf = new Map<string, number>();
  const sets: number[][] = [];
  for (const { layers, seconds } of timings(problem)) {
    const time = seconds.get(optionOf[layers[0]]);
    if (time === undefined || layers.some((layer) => optionOf[layer] !== optionOf[layers[0]])) continue;
    sets.push([...layers]);
    secondsOf.set(setKey(layers), time);
  }
  const time = (partition: readonly number[]) =>
    partition.reduce((sum, set) => sum + secondsOf.get(setKey(sets[set]))!, 0);
  const best = fusibles(problem.layers.length, sets, (layer) => problem.layers[layer].name).map(
    ({ partitions }) => [...partitions].sort((a, b) => time(a) - time(b))[0],
  );
  if (best.some((partition) => partition === undefined)) return undefined;
  return {
    sets: best.flatMap((partition) => partition.map((set) => sets[set])),
    seconds: best.reduce((sum, partition) => sum + time(partition), 0),
  };
}
