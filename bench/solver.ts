/**
 * The planner on Llama 3.1 8B's shape with made-up sensitivities and costs: program (3), 224 layers x 34 options under
 * a budget of bits, and program (4), 384 sets x 34 options under a budget of seconds. Each is solved to 0.1% as the
 * planner does it (HiGHS only where needed), and to the gap that --tight asks, which makes HiGHS work.
 *
 * node bench/solver.ts [--json] [--runs 20] [--tight 2e-4]
 */
import { parseArgs } from "node:util";
import type { Problem } from "../src/budget/problem.ts";
import { solve } from "../src/budget/solve.ts";
import { median } from "../src/median.ts";
import { fillGaussian } from "../src/quantizers/random.ts";
import { table } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    runs: { type: "string", default: "20" },
    tight: { type: "string", default: "2e-4" },
  },
});

const shapes = { q: 16.8e6, k: 4.2e6, v: 4.2e6, o: 16.8e6, gate: 58.7e6, up: 58.7e6, down: 58.7e6 };
const fused = [
  ["q"],
  ["k"],
  ["v"],
  ["q", "k"],
  ["q", "v"],
  ["k", "v"],
  ["q", "k", "v"],
  ["o"],
  ["up"],
  ["gate"],
].concat([["gate", "up"], ["down"]]);

/** Q-Palette's families with two kernels for the simple ones: bits, distance from Shannon's bound, relative speed. */
const options = [
  ...[1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75, 4, 4.25, 4.5, 4.75, 5].map((bits) =>
    option("tcq", bits, 1.13),
  ),
  ...[2, 3, 4, 5, 6, 7, 8].map((bits) => option("nuq", bits, 1.9)),
  ...[1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6].map((bits) => option("vq", bits, 1.7)),
  ...[3, 4].map((bits) => option("nuq-cc", bits, 1.9)),
];

function option(family: string, bits: number, excess: number) {
  return { name: `${family}-${bits}`, bits, distortion: excess * 2 ** (-2 * bits) };
}

function problem(seed: number, budget: Problem["budget"]): Problem {
  const noise = fillGaussian(new Float64Array(32 * 7 + 12 * 34), seed);
  const layers = Array.from({ length: 32 }, (_, block) =>
    Object.entries(shapes).map(([kind, weights], i) => ({
      name: `${block}.${kind}`,
      weights,
      sensitivity: Math.exp(0.8 * noise[block * 7 + i]) * (block < 2 ? 5 : 1),
      group: `${block}.${"qkv".includes(kind) ? "qkv" : kind === "gate" || kind === "up" ? "mlp" : kind}`,
    })),
  ).flat();
  if ("bits" in budget) return { layers, options, budget };
  const costs = Array.from({ length: 32 }, (_, block) =>
    fused.flatMap((kinds, set) =>
      options.map(({ name, bits }, i) => {
        const weights = kinds.reduce((sum, kind) => sum + shapes[kind as keyof typeof shapes], 0);
        const launch = 3e-6 * (1 + 0.3 * noise[224 + set * 34 + i] ** 2);
        const speed = name.startsWith("tcq") ? 0.85 : 1;
        return {
          layers: kinds.map((kind) => `${block}.${kind}`),
          option: name,
          seconds: launch + (weights * bits) / 8 / (0.9e12 * speed),
        };
      }),
    ),
  ).flat();
  return { layers, options, budget, costs, overheadSeconds: 0.001 };
}

const bits = [2.25, 2.5, 3, 3.25, 3.5, 4];
const cases = [
  { program: "3", sets: 224, budgets: bits.map((each) => ({ bits: each })) },
  {
    program: "4",
    sets: 384,
    budgets: bits.map((each) => ({ seconds: 0.0022 + (each * 6.98e9) / 8 / 0.85e12 })),
  },
];

const results = [];
for (const { program, sets, budgets } of cases) {
  for (const target of [0.001, Number(flags.tight)]) {
    const runs = [];
    for (let run = 0; run < Number(flags.runs); run++) {
      const input = problem(run + 1, budgets[run % budgets.length]);
      const started = performance.now();
      const { gap } = await solve(input, { gap: target });
      runs.push({ seconds: (performance.now() - started) / 1000, gap });
    }
    const seconds = runs.map((run) => run.seconds);
    results.push({
      program,
      sets,
      options: options.length,
      target,
      runs: runs.length,
      medianSeconds: median(seconds),
      worstSeconds: Math.max(...seconds),
      worstGap: Math.max(...runs.map((run) => run.gap)),
    });
  }
}

if (flags.json) console.log(JSON.stringify({ results }, null, 2));
else {
  const header = ["program", "sets", "options", "target", "runs", "median s", "worst s", "worst gap"];
  const rows = results.map((each) => [
    `(${each.program})`,
    ...[each.sets, each.options, each.target, each.runs].map(String),
    ...[each.medianSeconds, each.worstSeconds].map((value) => value.toFixed(3)),
    each.worstGap.toExponential(2),
  ]);
  console.log(table(header, rows));
}
