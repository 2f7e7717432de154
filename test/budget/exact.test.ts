import fc from "fast-check";
import { expect, test } from "vitest";
import { penalties } from "../../src/budget/core.ts";
import { solveExactly } from "../../src/budget/exact.ts";
import { relax, totalOf } from "../../src/budget/lagrangian.ts";
import { buildProgram, estimate } from "../../src/budget/program.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";
import { bitsProblem, bruteForce, fusedProblem } from "./problems.ts";

test.each([
  ["(3)", bitsProblem],
  ["(4)", fusedProblem],
])("HiGHS finds the optimum of small programs %s", async (_, arbitrary) => {
  await fc.assert(
    fc.asyncProperty(arbitrary, async (problem) => {
      const best = bruteForce(problem);
      fc.pre(best !== undefined);
      const program = buildProgram(problem, estimate(problem));
      const relaxed = relax(program);
      fc.pre(totalOf(relaxed.plan).loss > relaxed.bound);
      const dual = penalties(program, relaxed.price);
      const { plan, bound } = await solveExactly(program, dual, relaxed, { gap: 0, seconds: 10 }, 1e-12);
      expect(totalOf(plan).loss).toBeCloseTo(best, 6);
      expect(totalOf(plan).cost).toBeLessThanOrEqual(program.capacity);
      expect(bound).toBeCloseTo(best, 6);
    }),
    { numRuns: 6 },
  );
});

test("HiGHS closes a gap that the dual leaves, and stops when its time is over", async () => {
  const noise = fillGaussian(new Float64Array(60), 3);
  const layers = Array.from({ length: 60 }, (_, i) => ({
    name: `${i}`,
    weights: 1000 + Math.round(100 * Math.abs(noise[i])),
    sensitivity: Math.exp(noise[59 - i]),
  }));
  const options = [2, 3, 4].map((bits) => ({ name: `${bits}`, bits, distortion: 1.2 * 2 ** (-2 * bits) }));
  const problem = { layers, options, budget: { bits: 2.7 } };
  const program = buildProgram(problem, estimate(problem));
  const relaxed = relax(program);
  const dual = penalties(program, relaxed.price);
  const closed = await solveExactly(program, dual, relaxed, { gap: 1e-4, seconds: 20 }, 1e-12);
  const { loss } = totalOf(closed.plan);
  expect((loss - closed.bound) / loss).toBeLessThanOrEqual(1.001e-4);
  expect(closed.bound).toBeGreaterThanOrEqual(relaxed.bound);
  expect(loss).toBeLessThanOrEqual(totalOf(relaxed.plan).loss);
  const hurried = await solveExactly(program, dual, relaxed, { gap: 0, seconds: 0 }, 1e-12);
  expect(totalOf(hurried.plan).loss).toBeLessThanOrEqual(totalOf(relaxed.plan).loss);
  expect(hurried.bound).toBeGreaterThanOrEqual(relaxed.bound);
});
