/**
 * What adaptive mapping is worth: the dispatcher against every static strategy, against a rule by the number of tokens
 * alone (section 6.4 of the paper, ADAngel-R), and against itself without each strategy.
 *
 * Every strategy is measured for the products of a model's layers, at the tokens of prefills and of batched decoding;
 * a policy's time is the sum over the model's layers. The dispatcher's map is tuned first, apart from the figures.
 *
 * node bench/mapping.ts [--json] [--schemes nuq-4,nuq-3+nuq-4] [--tokens 1,2,4,8,16,64,512] [--threads 1]
 *   [--simd relaxed] [--plot FILE]
 *
 * --schemes: of all products of a layer, or a mix: the first for the first product (q and o), and so on in turn.
 * "batches": the same sums over at most 8 tokens alone, where prefills do not outweigh decoding.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { SimdLevel } from "../src/backends/wasm/module.ts";
import { spawnNodeWorker } from "../src/backends/wasm/workers.node.ts";
import type { PolicyShape } from "../src/mapping/policyFile.ts";
import { policyOf } from "../src/mapping/policyMap.ts";
import { type TunedShape, tune } from "../src/mapping/tune.ts";
import { median } from "../src/median.ts";
import type { LinearPolicy, StrategyName } from "../src/ops/linear/policy.ts";
import { openWasm } from "../src/ops/wasm.ts";
import { drawCharts } from "../src/plot/chart.ts";
import { numbers, seconds, table } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    schemes: { type: "string", default: "nuq-4,nuq-3,nuq-2,uniform-2,nuq-3+nuq-4" },
    tokens: { type: "string", default: "1,2,4,8,16,64,512" },
    threads: { type: "string", default: "1" },
    simd: { type: "string", default: "relaxed" },
    plot: { type: "string" },
  },
});

/** SmolLM2-135M: rows, columns, how many in a layer. */
const layers = [
  { n: 576, k: 576, count: 2 },
  { n: 192, k: 576, count: 2 },
  { n: 1536, k: 576, count: 2 },
  { n: 576, k: 1536, count: 1 },
];
/** Batches of decoding, and prefills. */
const tokenCounts = numbers(flags.tokens);
/** Up to so many tokens a step is a batch of decoding, or of verification. */
const LARGEST_BATCH = 8;

interface Outcome {
  readonly scheme: string;
  readonly policy: string;
  /** Seconds of all products of a layer, over all token counts. */
  readonly seconds: number;
  /** Over the dispatcher's. */
  readonly ratio: number;
  /** The same of batches alone. */
  readonly batchRatio: number;
}

const threads = Number(flags.threads);
const simd = flags.simd as SimdLevel;
const open = (policy: LinearPolicy) =>
  openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true, simd, policy });
const shapesOf = (mix: string): TunedShape[] => {
  const schemes = mix.split("+");
  return layers.map(({ n, k }, i) => ({ n, k, scheme: schemes[i % schemes.length] }));
};
const measure = (scheme: string, tokens?: readonly number[]) =>
  tune(shapesOf(scheme), open, { activationBits: [8], tokens, everyLayout: tokens !== undefined });

type Choose = (shape: PolicyShape, m: number) => StrategyName | undefined;

/** Seconds of all layers under a policy, in all and in batches. */
interface Total {
  readonly all: number;
  readonly batches: number;
}

/** Undefined where the policy names a strategy that some shape has not. */
function total(measured: readonly PolicyShape[], choose: Choose): Total | undefined {
  let [all, batches] = [0, 0];
  for (const [i, shape] of measured.entries()) {
    for (const point of shape.points.filter(({ m }) => tokenCounts.includes(m))) {
      const name = choose(shape, point.m);
      const time = name && point.seconds[name];
      if (time === undefined) return undefined;
      all += layers[i].count * time;
      if (point.m <= LARGEST_BATCH) batches += layers[i].count * time;
    }
  }
  return { all, batches };
}

function fastest({ seconds: times }: PolicyShape["points"][number], without?: StrategyName) {
  const names = (Object.keys(times) as StrategyName[]).filter((name) => name !== without);
  return names.reduce<StrategyName | undefined>(
    (best, name) => (best && times[best]! <= times[name]! ? best : name),
    undefined,
  );
}

async function compare(scheme: string): Promise<{ outcomes: Outcome[]; measured: PolicyShape[] }> {
  const map = await measure(scheme);
  const policy = policyOf({ shapes: map });
  const measured = await measure(scheme, tokenCounts);
  const names = [...new Set(measured.flatMap(({ points }) => points.flatMap((p) => Object.keys(p.seconds))))];
  const strategies = names as StrategyName[];
  const pointOf = (shape: PolicyShape, m: number) => shape.points.find((point) => point.m === m)!;
  const named: [string, Total | undefined][] = [
    [
      "dispatcher",
      total(measured, ({ n, k, scheme: own }, m) => policy({ n, k, scheme: own, activations: "int8", m })),
    ],
    ["oracle", total(measured, (shape, m) => fastest(pointOf(shape, m)))],
    ...strategies.map((name): [string, Total | undefined] => [`always ${name}`, total(measured, () => name)]),
    ["by M alone", ruleByTokens(measured, strategies)],
    ...strategies.map((name): [string, Total | undefined] => [
      `without ${name}`,
      total(measured, (shape, m) => fastest(pointOf(shape, m), name)),
    ]),
  ];
  const own = named[0][1]!;
  const outcomes = named.flatMap(([policyName, time]) =>
    time === undefined
      ? []
      : [
          {
            ...{ scheme, policy: policyName, seconds: time.all },
            ratio: time.all / own.all,
            batchRatio: time.batches / own.batches,
          },
        ],
  );
  return { outcomes, measured };
}

/** The best rule "a below a border, b from there", the same for all shapes: for the sum of all, and for batches. */
function ruleByTokens(
  measured: readonly PolicyShape[],
  strategies: readonly StrategyName[],
): Total | undefined {
  const times = strategies.flatMap((below) =>
    strategies.flatMap((above) =>
      tokenCounts.flatMap((border) => total(measured, (_, m) => (m < border ? below : above)) ?? []),
    ),
  );
  if (times.length === 0) return undefined;
  return {
    all: Math.min(...times.map(({ all }) => all)),
    batches: Math.min(...times.map(({ batches }) => batches)),
  };
}

/** Microseconds of one look-up in a tuned table. */
function lookUpTime(shapes: PolicyShape[]): number {
  const policy = policyOf({ shapes });
  const { n, k, scheme } = shapes[0];
  const runs = Array.from({ length: 9 }, () =>
    seconds(() => {
      for (let m = 1; m <= 20_000; m++) policy({ n, k, scheme, activations: "int8", m });
    }),
  );
  return (1e6 * median(runs)) / 20_000;
}

function plot(measured: readonly PolicyShape[]): string {
  return drawCharts(
    measured.map(({ n, k, scheme, points }) => ({
      title: `${scheme}, ${n} x ${k}, ${threads} thread${threads > 1 ? "s" : ""}`,
      x: { title: "tokens (M)", log: true },
      y: { title: "microseconds per token", log: true },
      series: (Object.keys(points[0].seconds) as StrategyName[]).map((name) => ({
        name,
        points: points.flatMap(({ m, seconds: times }) =>
          times[name] === undefined ? [] : [{ x: m, y: (1e6 * times[name]) / m }],
        ),
      })),
    })),
  );
}

const results: Outcome[] = [];
const charts: PolicyShape[] = [];
for (const scheme of flags.schemes.split(",")) {
  const { outcomes, measured } = await compare(scheme);
  results.push(...outcomes);
  charts.push(measured[2]);
}
const lookUp = lookUpTime(charts);
if (flags.plot) writeFileSync(flags.plot, plot(charts));
if (flags.json) console.log(JSON.stringify({ threads, simd, results, lookUpMicroseconds: lookUp }, null, 2));
else {
  const rows = results.map(({ scheme, policy, seconds: time, ratio, batchRatio }) => [
    scheme,
    policy,
    (1000 * time).toFixed(2),
    ratio.toFixed(3),
    batchRatio.toFixed(3),
  ]);
  console.log(table(["weights", "policy", "ms", "over the dispatcher's", "batches"], rows));
  console.log(`one look-up: ${lookUp.toFixed(3)} us`);
}
