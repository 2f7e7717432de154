/**
 * What compensation gives and costs: perplexity over the channels compensated, by how they are chosen and by the residual's
 * bits; time of a decoding step; resident memory; recall of the choice by buckets.
 *
 * Models are folders that `halftone quantize --residual B` wrote. Perplexities are lines of --results and not measured
 * again: a run that was ended goes on where it stopped.
 *
 * node bench/compensation.ts --models DIR,DIR,... --text FILE --results FILE [--json] [--plot FILE.svg [--highest PERPLEXITY]]
 *   [--channels 0,8,16,32,64,128,256] [--select exact,static,random,bucket] [--profile FILE] [--speed]
 *   [--context 1024] [--windows 20] [--bos auto|always|never] [--threads N]
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { magnitudeOfRank } from "../src/compensation/profile.ts";
import { channelsOf, SELECTIONS, type Selection, uniformShares } from "../src/compensation/settings.ts";
import type { Model } from "../src/engine/model.ts";
import { perplexity } from "../src/engine/perplexity.ts";
import { profileInputs } from "../src/engine/profile.ts";
import { median } from "../src/median.ts";
import { load } from "../src/node.ts";
import { selectChannels } from "../src/ops/compensate/reference.ts";
import type { BosRule } from "../src/text/bos.ts";
import { type Loss, plotLosses } from "./compensationPlot.ts";
import { numbers, table } from "./measure.ts";
import { openResults } from "./results.ts";

const { values: flags } = parseArgs({
  options: {
    models: { type: "string" },
    text: { type: "string" },
    results: { type: "string" },
    channels: { type: "string", default: "0,8,16,32,64,128,256" },
    select: { type: "string", default: "exact" },
    profile: { type: "string" },
    speed: { type: "boolean", default: false },
    plot: { type: "string" },
    highest: { type: "string", default: "1e9" },
    context: { type: "string", default: "1024" },
    windows: { type: "string", default: "20" },
    bos: { type: "string", default: "auto" },
    threads: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const { models, text, results } = flags;
if (!models || !text || !results) throw new Error("give --models, --text and --results");
const context = Number(flags.context);
const windows = Number(flags.windows);
const threads = flags.threads ? Number(flags.threads) : undefined;
const shares = numbers(flags.channels);
const selections = flags.select.split(",") as Selection[];
if (!selections.every((each) => SELECTIONS.includes(each))) throw new Error(`--select ${flags.select}`);

/** Run in a process of its own: prints the resident set after 16 tokens. */
const residentScript = [
  "--input-type=module",
  "-e",
  `const { load } = await import(${JSON.stringify(new URL("../src/node.ts", import.meta.url).href)});
   const [path, store] = process.argv.slice(1);
   const compensation = store === "none" ? false : { store };
   const model = await load(path, { threads: 1, context: 64, compensation });
   for (let i = 0; i < 16; i++) await model.runner.step({ ids: [i], positions: [i] }, "last");
   gc();
   console.log(process.memoryUsage().rss);
   model.dispose();`,
];

/** Channels and tokens that recall and buckets are measured on. */
const PROFILE_TOKENS = 1024;
/** Every reading is timed so often, in turn with the others. */
const ROUNDS = 40;

/** Where rows may stay, and who reads them. */
const PLACES = {
  memory: {},
  file: { store: "file" },
  "file, one reader": { store: "file", readers: 1 },
} as const;
type Place = keyof typeof PLACES;

interface Speed {
  readonly model: string;
  readonly place: Place;
  readonly channels: number;
  /** Median of the steps, and of their ratios to the uncompensated step beside each. */
  readonly seconds: number;
  readonly slowdown: number;
}

interface Resident {
  readonly model: string;
  readonly store: "none" | "memory" | "file";
  /** Resident set of a process that loaded the model and decoded some tokens. */
  readonly bytes: number;
}

const { known: losses, keep } = openResults<Loss>(results);
const speeds: Speed[] = [];
const residents: Resident[] = [];
const recalls: { model: string; channels: number; recall: number }[] = [];
const corpus = readFileSync(text, "utf8");

for (const path of models.split(",")) {
  const model = basename(path);
  for (const select of selections) {
    for (const channels of shares) {
      // Without channels there is nothing to choose.
      if (channels === 0 && select !== selections[0]) continue;
      const known = losses.some(
        (each) =>
          each.model === model &&
          each.select === select &&
          each.channels === channels &&
          each.context === context &&
          each.windows === windows,
      );
      if (known) continue;
      const loaded = await open(path, channels, select);
      const bos = flags.bos as BosRule;
      const { perplexity: loss } = await perplexity(loaded, corpus, { context, windows, bos });
      loaded.dispose();
      keep({ model, select, channels, perplexity: loss, context, windows });
    }
  }
  if (selections.includes("bucket")) await measureRecall(path, model);
  if (!flags.speed) continue;
  await measureSpeed(path, model);
  for (const store of ["none", "memory", "file"] as const) {
    const bytes = Number(
      execFileSync(process.execPath, ["--expose-gc", ...residentScript, path, store], { encoding: "utf8" }),
    );
    residents.push({ model, store, bytes });
  }
}

async function open(path: string, channels: number, select: Selection, store?: "file"): Promise<Model> {
  const compensation = channels > 0 && { channels: uniformShares(channels), select, store };
  const model = await load(path, { threads, compensation, context: Math.max(context, PROFILE_TOKENS) });
  if (select === "bucket" || select === "static") await profileInputs(model, sampleIds(model));
  return model;
}

function sampleIds(model: Model, from = 0): number[] {
  const sample = flags.profile ? readFileSync(flags.profile, "utf8") : corpus;
  return model.encodePrompt(sample.slice(0, 32 * PROFILE_TOKENS)).slice(from, from + PROFILE_TOKENS);
}

/** The share of the largest inputs that buckets find, with borders learnt from other tokens. */
async function measureRecall(path: string, model: string): Promise<void> {
  const loaded = await open(path, 32, "bucket");
  const { residuals } = loaded.weights;
  const profiles = new Map(
    residuals!.groups.map(({ group, handle }) => [handle, residuals!.profileOf(group)!]),
  );
  const found = new Map(shares.map((channels) => [channels, { hits: 0, all: 0 }]));
  await profileInputs(loaded, sampleIds(loaded, PROFILE_TOKENS), (residual, inputs) => {
    const profile = profiles.get(residual)!;
    const { columns } = residual;
    for (let at = 0; at < inputs.length; at += 16 * columns) {
      const x = inputs.subarray(at, at + columns);
      for (const [share, sum] of found) {
        const count = channelsOf(columns, share);
        if (count === 0) continue;
        const usual = magnitudeOfRank(profile, count);
        const exact = new Set(selectChannels(x, count, { by: "magnitude" }));
        const rule = { by: "buckets", largest: profile.largest, usual } as const;
        sum.hits += selectChannels(x, count, rule).filter((channel) => exact.has(channel)).length;
        sum.all += count;
      }
    }
  });
  loaded.dispose();
  for (const [channels, { hits, all }] of found)
    if (all > 0) recalls.push({ model, channels, recall: hits / all });
}

/**
 * Steps of decoding with each number of channels and from each place, each beside one without, along a text: what one token
 * chose, the next ones may choose again.
 */
async function measureSpeed(path: string, model: string): Promise<void> {
  const places = (Object.keys(PLACES) as Place[]).filter(
    (place) => place !== "file, one reader" || (threads ?? 2) > 1,
  );
  for (const place of places) {
    const loaded = await load(path, { threads, context, compensation: PLACES[place] });
    const { compensation: _, ...plain } = loaded.runner.reading;
    const step = async (id: number, position: number, channels: number) => {
      const compensated = { channels: uniformShares(channels), select: "exact" } as const;
      const how = channels > 0 ? { ...plain, compensation: compensated } : plain;
      const started = performance.now();
      await loaded.runner.step({ ids: [id], positions: [position] }, "last", how);
      return (performance.now() - started) / 1000;
    };
    const ids = sampleIds(loaded);
    for (const channels of shares.filter((each) => each > 0)) {
      const times: number[] = [];
      const ratios: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const without = await step(ids[round], round, 0);
        const seconds = await step(ids[round], round, channels);
        if (round < 8) continue;
        times.push(seconds);
        ratios.push(seconds / without);
      }
      speeds.push({ model, place, channels, seconds: median(times), slowdown: median(ratios) - 1 });
    }
    loaded.dispose();
  }
}

if (flags.plot) writeFileSync(flags.plot, plotLosses(losses, Number(flags.highest)));

if (flags.json) console.log(JSON.stringify({ losses, recalls, speeds, residents }, null, 2));
else {
  const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
  const rows = losses.map((each) => [
    each.model,
    each.select,
    String(each.channels),
    each.perplexity.toFixed(3),
  ]);
  console.log(table(["model", "choice", "channels", "perplexity"], rows));
  if (recalls.length > 0) {
    const found = recalls.map(({ model, channels, recall }) => [model, String(channels), percent(recall)]);
    console.log(table(["model", "channels", "recall"], found));
  }
  if (speeds.length > 0) {
    const timed = speeds.map(({ model, place, channels, seconds, slowdown }) => [
      ...[model, place, String(channels), (1000 * seconds).toFixed(2), percent(slowdown)],
    ]);
    console.log(table(["model", "rows", "channels", "ms/step", "slower"], timed));
    const held = residents.map(({ model, store, bytes }) => [model, store, (bytes / 1e6).toFixed(1)]);
    console.log(table(["model", "store", "MB resident"], held));
  }
}
