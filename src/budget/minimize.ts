/**
 * Solves an integer program to a gap.
 *
 * @module
 */
import { coreChoices, penalties } from "./core.ts";
import { type Effort, solveExactly } from "./exact.ts";
import { improve } from "./improve.ts";
import { type Proven, relax, totalOf } from "./lagrangian.ts";
import type { Program } from "./program.ts";
import { search } from "./search.ts";

/** What rounding may do to sums of losses and of priced costs. */
const ROUNDING = 1e-12;

/** Improvement is cheap and goes on below the gap that is asked for, until this one. */
const NEGLIGIBLE = 1e-6;

/**
 * The Lagrangian dual gives a bound and a plan; local improvement, branch and bound and HiGHS follow, each from what the
 * one before found, and only while the gap is wider than asked. The program must be feasible.
 */
export async function minimize(program: Program, effort: Effort): Promise<Proven> {
  const { price, ...relaxed } = relax(program);
  let best = settled(relaxed);
  if (gapOf(best) === 0) return best;
  const dual = penalties(program, price);
  const loss = totalOf(best.plan).loss;
  const margin = ROUNDING * (Math.abs(loss) + price * program.capacity);
  const core = coreChoices(program, dual, loss - best.bound + margin);
  const enough = best.bound + Math.min(effort.gap, NEGLIGIBLE) * Math.abs(best.bound);
  best = settled({ ...best, plan: improve(program.capacity, core.choices, best.plan, enough) });
  if (gapOf(best) > effort.gap) best = settled(search(program.capacity, core, dual, best, effort.gap));
  if (gapOf(best) > effort.gap) best = settled(await solveExactly(program, dual, best, effort, margin));
  return best;
}

/** The smallest number of full precision: sums of smaller ones round by any share of themselves. */
const SMALLEST = 2 ** -1022;

/** How far the plan may be from the best, relative to the larger of loss and bound in size. */
export function gapOf({ plan, bound }: Proven): number {
  const { loss } = totalOf(plan);
  return loss <= bound ? 0 : (loss - bound) / Math.max(Math.abs(loss), Math.abs(bound), SMALLEST);
}

/** Rounding must not lift the bound above the plan. */
function settled({ plan, bound }: Proven): Proven {
  return { plan, bound: Math.min(bound, totalOf(plan).loss) };
}
