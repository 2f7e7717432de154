import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Plan } from "../../src/budget/plan.ts";
import type { Problem } from "../../src/budget/problem.ts";
import { leastBudget, solve } from "../../src/budget/solve.ts";
import { UsageError } from "../../src/errors.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";
import { bitsProblem, bruteForce, fusedProblem } from "./problems.ts";

/** Recomputes from the problem what the plan claims. */
function checkPlan(problem: Problem, plan: Plan): void {
  const { layers, options, budget, costs, overheadSeconds = 0 } = problem;
  const taken = plan.choice.flatMap((choice) => choice.layers);
  expect([...taken].sort()).toEqual(layers.map(({ name }) => name).sort());
  let [objective, bits, seconds] = [0, 0, overheadSeconds];
  for (const choice of plan.choice) {
    const option = options.find(({ name }) => name === choice.option)!;
    for (const layer of layers.filter(({ name }) => choice.layers.includes(name))) {
      objective += layer.sensitivity * option.distortion;
      bits += layer.weights * option.bits;
    }
    const cost = costs?.find(
      (each) =>
        each.option === choice.option &&
        new Set([...each.layers, ...choice.layers]).size === each.layers.length &&
        each.layers.length === choice.layers.length,
    );
    seconds += cost?.seconds ?? Number.NaN;
  }
  const weights = layers.reduce((sum, layer) => sum + layer.weights, 0);
  expect(plan.objective).toBeCloseTo(objective, 9);
  expect(plan.bits).toBeCloseTo(bits / weights, 9);
  expect(plan.bytes).toBe(Math.ceil(bits / 8));
  expect(plan.bound).toBeLessThanOrEqual(plan.objective);
  expect(plan.idealObjective + plan.distortionGap + plan.allocationGap).toBeCloseTo(plan.objective, 9);
  if ("bits" in budget) expect(bits / weights).toBeLessThanOrEqual(budget.bits * (1 + 1e-8));
  else {
    expect(plan.seconds).toBeCloseTo(seconds, 9);
    expect(seconds).toBeLessThanOrEqual(budget.seconds * (1 + 1e-8));
  }
}

describe.each([
  ["program (3)", bitsProblem],
  ["program (4)", fusedProblem],
])("%s", (_, arbitrary) => {
  test("finds the optimum of brute force, or says that there is none", async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (problem) => {
        const best = bruteForce(problem);
        if (best === undefined) {
          await expect(solve(problem)).rejects.toThrow(UsageError);
          return;
        }
        const plan = await solve(problem, { gap: 0 });
        checkPlan(problem, plan);
        expect(plan.objective).toBeLessThanOrEqual(best * (1 + 1e-6) + 1e-12);
        expect(plan.bound).toBeLessThanOrEqual(best * (1 + 1e-6) + 1e-12);
        expect(plan.gap).toBeLessThan(1e-6);
      }),
      { numRuns: 500 },
    );
  });

  test("keeps the gap that is asked for", async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (problem) => {
        const best = bruteForce(problem);
        fc.pre(best !== undefined);
        const plan = await solve(problem, { gap: 0.05 });
        checkPlan(problem, plan);
        expect(plan.gap).toBeLessThanOrEqual(0.05);
        expect(plan.bound).toBeLessThanOrEqual(best * (1 + 1e-6) + 1e-12);
        expect(plan.objective).toBeLessThanOrEqual(best / 0.95 + 1e-12);
      }),
      { numRuns: 300 },
    );
  });
});

test("a larger budget never gives a worse plan", async () => {
  await fc.assert(
    fc.asyncProperty(bitsProblem, fc.double({ min: 0, max: 2, noNaN: true }), async (problem, more) => {
      const least = await leastBudget(problem);
      const small = await solve({ ...problem, budget: { bits: least } }, { gap: 0 });
      const large = await solve({ ...problem, budget: { bits: least + more } }, { gap: 0 });
      expect(large.objective).toBeLessThanOrEqual(small.objective * (1 + 1e-6) + 1e-12);
    }),
    { numRuns: 200 },
  );
});

describe("a model's worth of layers", () => {
  const options = [1.5, 2, 2.25, 2.5, 3, 3.5, 4].map((bits) => ({
    name: `tcq-${bits}`,
    bits,
    distortion: 1.13 * 2 ** (-2 * bits),
  }));
  const noise = fillGaussian(new Float64Array(140), 7);
  const layers = Array.from({ length: 140 }, (_, i) => ({
    name: `${i}`,
    weights: i % 7 === 1 || i % 7 === 2 ? 1000 : 4000,
    sensitivity: Math.exp(noise[i]),
    group: `${Math.floor(i / 7)}.${[0, 0, 0, 1, 2, 2, 3][i % 7]}`,
  }));

  test.each([1.5, 2.1, 3, 3.25, 4, 9])("%s bits: gap below 0.1%", async (bits) => {
    const problem = { layers, options, budget: { bits } };
    const plan = await solve(problem);
    checkPlan(problem, plan);
    expect(plan.gap).toBeLessThanOrEqual(0.001);
    expect(plan.distortionGap).toBeGreaterThanOrEqual(0);
    expect(plan.allocationGap).toBeGreaterThanOrEqual(0);
  });

  test("the bound rises as the budget falls", async () => {
    const budgets = [4, 3.5, 3.25, 3, 2.5, 2.1, 1.5];
    const bounds = await Promise.all(
      budgets.map(async (bits) => (await solve({ layers, options, budget: { bits } })).bound),
    );
    expect(bounds).toEqual([...bounds].sort((a, b) => a - b));
  });

  test("fuses where it saves time", async () => {
    const sets = Array.from({ length: 20 }, (_, block) =>
      [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2], [3], [4], [5], [4, 5], [6]].map((set) =>
        set.map((i) => layers[7 * block + i]),
      ),
    ).flat();
    const costs = sets.flatMap((set) =>
      options.map(({ name, bits }) => ({
        layers: set.map((layer) => layer.name),
        option: name,
        seconds: 300 + bits * set.reduce((sum, { weights }) => sum + weights, 0),
      })),
    );
    const problem = { layers, options, costs, budget: { seconds: 3.1 * 440_000 } };
    const plan = await solve(problem);
    checkPlan(problem, plan);
    expect(plan.gap).toBeLessThanOrEqual(0.001);
    expect(plan.choice.some((choice) => choice.layers.length > 1)).toBe(true);
    const apart = await solve({ ...problem, costs: costs.filter((cost) => cost.layers.length === 1) });
    expect(plan.objective).toBeLessThan(apart.bound);
  });
});

describe("degenerate problems", () => {
  test("losses too small for full precision keep the gap", async () => {
    const [tiny, tinier] = [4.4e-323, 5e-324];
    const plan = await solve(
      {
        layers: [
          { name: "q", weights: 1, sensitivity: 5, group: "a" },
          { name: "k", weights: 2, sensitivity: 0, group: "a" },
          { name: "v", weights: 3, sensitivity: 6.500000000000001, group: "a" },
          { name: "gate", weights: 4, sensitivity: 1, group: "b" },
          { name: "up", weights: 5, sensitivity: 1, group: "b" },
        ],
        options: [
          { name: "o0", bits: 2, distortion: 0.1 },
          { name: "o1", bits: 2.5, distortion: tiny },
          { name: "o2", bits: 2.5, distortion: tinier },
        ],
        costs: [
          { layers: ["k"], option: "o0", seconds: 0 },
          { layers: ["v", "q"], option: "o2", seconds: 0 },
          { layers: ["gate"], option: "o2", seconds: 0 },
          { layers: ["up"], option: "o2", seconds: 2 },
          { layers: ["up", "gate"], option: "o1", seconds: 0 },
        ],
        overheadSeconds: 0,
        budget: { seconds: 0.18749999981249998 },
      },
      { gap: 0.05 },
    );
    expect(plan.gap).toBeLessThanOrEqual(0.05);
  });

  const layer = (name: string, sensitivity = 1) => ({ name, weights: 10, sensitivity, group: "g" });
  const two = { name: "two", bits: 2, distortion: 0.1 };
  const four = { name: "four", bits: 4, distortion: 0.01 };

  test("one option", async () => {
    const plan = await solve({ layers: [layer("a"), layer("b")], options: [two], budget: { bits: 2 } });
    expect(plan).toMatchObject({ objective: 0.2, bound: 0.2, gap: 0, bits: 2, bytes: 5 });
    expect(plan.choice).toEqual([
      { layers: ["a"], option: "two" },
      { layers: ["b"], option: "two" },
    ]);
  });

  test("layers of no sensitivity take the cheapest option", async () => {
    const plan = await solve({
      layers: [layer("a", 0), layer("b", 0)],
      options: [four, two],
      budget: { bits: 4 },
    });
    expect(plan).toMatchObject({ objective: 0, gap: 0, bits: 2, distortionGap: 0, allocationGap: 0 });
  });

  test("of options at one cost the best", async () => {
    const options = [two, { ...two, name: "better", distortion: 0.05 }];
    const plan = await solve({ layers: [layer("a")], options, budget: { bits: 2 } });
    expect(plan.choice[0].option).toBe("better");
  });

  test("a budget met exactly, in decimal bits", async () => {
    const options = [{ name: "o", bits: 3.02, distortion: 0.1 }];
    const layers = Array.from({ length: 7 }, (_, i) => ({ ...layer(`${i}`), weights: 1001 }));
    expect((await solve({ layers, options, budget: { bits: 3.02 } })).bits).toBeCloseTo(3.02);
  });

  test("an infeasible budget is told the least feasible one", async () => {
    const layers = [layer("a"), { ...layer("b"), weights: 11 }];
    const problem: Problem = {
      layers,
      options: [two, four],
      measured: [{ layer: "b", option: "two", bytes: 3 }],
      budget: { bits: 1 },
    };
    await expect(solve(problem)).rejects.toThrow(/budget.bits: 1 bits .* takes 2.09524/);
    const plan = await solve({ ...problem, budget: { bits: 2.09524 } });
    expect(plan.bits).toBeCloseTo(await leastBudget(problem), 12);
    const costs = [{ layers: ["a", "b"], option: "two", seconds: 1 / 3 }];
    const timed: Problem = { ...problem, costs, overheadSeconds: 0.5, budget: { seconds: 0.4 } };
    await expect(solve(timed)).rejects.toThrow(/fastest plan takes 0.833334, 0.5 of them overhead/);
    expect((await solve({ ...timed, budget: { seconds: 0.833334 } })).choice).toHaveLength(1);
  });

  test("what has no cost is not available", async () => {
    const problem: Problem = {
      layers: [layer("a"), layer("b")],
      options: [two, four],
      costs: [
        { layers: ["a"], option: "two", seconds: 1 },
        { layers: ["a"], option: "four", seconds: 2 },
        { layers: ["b"], option: "two", seconds: 1 },
      ],
      budget: { seconds: 100 },
    };
    expect((await solve(problem)).choice).toEqual([
      { layers: ["a"], option: "four" },
      { layers: ["b"], option: "two" },
    ]);
    const uncovered = { ...problem, costs: problem.costs!.slice(0, 2) };
    await expect(solve(uncovered)).rejects.toThrow(/nothing covers "b"/);
  });

  test("a budget of bits fuses equal layers afterwards", async () => {
    const costs = [["a"], ["b"], ["b", "a"]].map((names) => ({ layers: names, option: "two", seconds: 1 }));
    const problem: Problem = { layers: [layer("a"), layer("b")], options: [two], costs, budget: { bits: 3 } };
    expect(await solve(problem)).toMatchObject({
      seconds: 1,
      choice: [{ layers: ["a", "b"], option: "two" }],
    });
    const partly = await solve({ ...problem, costs: costs.slice(0, 1) });
    expect(partly.choice).toHaveLength(2);
    expect(partly).not.toHaveProperty("seconds");
  });

  test("a gap that is no number from 0 up is refused", async () => {
    const problem: Problem = { layers: [layer("a")], options: [two], budget: { bits: 2 } };
    await expect(solve(problem, { gap: -1 })).rejects.toThrow(UsageError);
    await expect(solve(problem, { seconds: Number.NaN })).rejects.toThrow(UsageError);
  });

  test("measured losses and bytes replace estimates", async () => {
    const problem: Problem = {
      layers: [layer("a"), layer("b")],
      options: [two, four],
      measured: [
        { layer: "a", option: "four", loss: 0.5, bytes: 6 },
        { layer: "b", option: "two", loss: -0.01 },
      ],
      budget: { bits: 4 },
    };
    const plan = await solve(problem, { gap: 0 });
    expect(plan.choice.map(({ option }) => option)).toEqual(["two", "two"]);
    expect(plan.objective).toBeCloseTo(0.09, 12);
  });
});
