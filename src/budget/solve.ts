/**
 * The planner: which quantizer each layer gets and which layers are fused, under a budget of bits or seconds.
 *
 * @module
 * @example
 * const plan = await solve({
 *   layers: [{ name: "q", weights: 4096, sensitivity: 2 }, { name: "o", weights: 4096, sensitivity: 1 }],
 *   options: [{ name: "nuq-2", bits: 2, distortion: 0.117 }, { name: "nuq-4", bits: 4, distortion: 0.0095 }],
 *   budget: { bits: 3 },
 * });
 */
import { UsageError } from "../errors.ts";
import { leastCost, totalOf } from "./lagrangian.ts";
import { gapOf, minimize } from "./minimize.ts";
import { assemble, type Plan } from "./plan.ts";
import type { Problem } from "./problem.ts";
import { buildProgram, estimate, type Program } from "./program.ts";

export interface SolveOptions {
  /** Relative gap between the plan and the bound to reach. Default 0.001; 0 asks for the optimum. */
  readonly gap?: number;
  /** Most time of the exact solver, in seconds. The plan's gap says what was reached. Default 30. */
  readonly seconds?: number;
}

/**
 * Solves program (3), or (4) where costs name fused sets, to a relative gap.
 *
 * Throws a UsageError for a malformed problem, and for a budget that no plan meets (it says the least that one does).
 */
export async function solve(input: Problem, options: SolveOptions = {}): Promise<Plan> {
  const { gap = 0.001, seconds = 30 } = options;
  if (!(gap >= 0 && seconds >= 0)) {
    throw new UsageError(`gap ${gap}, seconds ${seconds}: both must be numbers from 0 up`);
  }
  const problem = await parse(input);
  const estimates = estimate(problem);
  const program = buildProgram(problem, estimates);
  checkFeasible(problem, program);
  const solution = await minimize(program, { gap, seconds });
  return assemble(problem, estimates, program, solution.plan, {
    objective: totalOf(solution.plan).loss,
    bound: solution.bound,
    gap: gapOf(solution),
  });
}

/** The smallest feasible budget of the problem's kind: bits per weight, or seconds with the overhead. */
export async function leastBudget(input: Problem): Promise<number> {
  const problem = await parse(input);
  return budgetOf(problem, leastCost(buildProgram(problem, estimate(problem))));
}

/** The schemas' library is loaded on the first problem: 19 MB that a running model does not need. */
async function parse(input: Problem): Promise<Problem> {
  const { parseProblem } = await import("./problem.ts");
  return parseProblem(input);
}

function checkFeasible(problem: Problem, program: Program): void {
  const least = leastCost(program);
  if (least <= program.capacity) return;
  const needed = roundUp(budgetOf(problem, least));
  const { budget } = problem;
  if ("bits" in budget) {
    throw new UsageError(
      `budget.bits: ${budget.bits} bits per weight are too few; with the smallest option everywhere it takes ${needed}`,
    );
  }
  const overhead = problem.overheadSeconds ? `, ${problem.overheadSeconds} of them overhead` : "";
  throw new UsageError(
    `budget.seconds: ${budget.seconds} seconds are too few; the fastest plan takes ${needed}${overhead}`,
  );
}

function budgetOf({ layers, budget, overheadSeconds = 0 }: Problem, cost: number): number {
  if ("seconds" in budget) return cost + overheadSeconds;
  return cost / layers.reduce((sum, { weights }) => sum + weights, 0);
}

/** Six digits, so rounded that the budget is feasible. */
function roundUp(value: number): number {
  if (value === 0) return 0;
  const unit = 10 ** (Math.floor(Math.log10(value)) - 5);
  const rounded = Number(value.toPrecision(6));
  return rounded >= value ? rounded : Number((rounded + unit).toPrecision(6));
}
