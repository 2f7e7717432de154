/**
 * The Lagrangian dual of the program: relax the budget, price it. Every block then chooses alone, so the best price is
 * found exactly by walking the blocks' convex hulls, steepest step first; the walk stops where the budget ends, at the
 * dual's optimum (a bound no plan can beat) and at a feasible plan.
 *
 * @module
 */
import { type Configuration, frontier, slope } from "./frontier.ts";
import type { Program } from "./program.ts";

/** A plan and what is known of all others. */
export interface Proven {
  /** A feasible plan: one configuration for each block. */
  readonly plan: readonly Configuration[];
  /** No feasible plan has less loss. */
  readonly bound: number;
}

export interface Relaxation extends Proven {
  /** The dual's optimum: loss that one more unit of cost saves. */
  readonly price: number;
}

/** What the cheapest plan costs, in bits or seconds. */
export function leastCost({ blocks, items }: Program): number {
  return blocks.reduce(
    (sum, { partitions }) =>
      sum +
      partitions.reduce(
        (least, sets) =>
          Math.min(
            least,
            sets.reduce((cost, set) => cost + items[set][0].cost, 0),
          ),
        Infinity,
      ),
    0,
  );
}

/** Solves the dual. The program must be feasible: leastCost at most its capacity. */
export function relax(program: Program): Relaxation {
  const frontiers = program.blocks.map((block) => frontier(program, block));
  const level = new Int32Array(frontiers.length);
  let [cost, loss] = [0, 0];
  for (const [first] of frontiers) {
    cost += first.cost;
    loss += first.loss;
  }
  let bound: number | undefined;
  let price = 0;
  for (const step of steps(frontiers)) {
    const hull = frontiers[step.block];
    if (level[step.block] !== step.from) continue;
    const [from, to] = [hull[step.from], hull[step.from + 1]];
    if (cost - from.cost + to.cost > program.capacity) {
      if (bound === undefined) {
        price = step.slope;
        bound = loss - price * Math.max(0, program.capacity - cost);
      }
      continue;
    }
    cost += to.cost - from.cost;
    loss += to.loss - from.loss;
    level[step.block]++;
  }
  const plan = frontiers.map((hull, block) => hull[level[block]]);
  return { bound: bound ?? totalOf(plan).loss, price, plan };
}

export function totalOf(plan: readonly Configuration[]): { cost: number; loss: number } {
  let [cost, loss] = [0, 0];
  for (const each of plan) {
    cost += each.cost;
    loss += each.loss;
  }
  return { cost, loss };
}

function steps(frontiers: readonly (readonly Configuration[])[]) {
  const all = frontiers.flatMap((hull, block) => {
    let last = Infinity;
    return hull.slice(1).map((to, from) => {
      // Rounding must not put a step before the one it follows.
      last = Math.min(last, slope(hull[from], to));
      return { block, from, slope: last };
    });
  });
  return all.sort((a, b) => b.slope - a.slope);
}
