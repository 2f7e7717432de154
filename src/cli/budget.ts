/**
 * From flags to what a planner needs.
 *
 * @module
 */
import { z } from "zod";
import { problemsOf } from "../budget/problem.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { calibrationSequences } from "../engine/calibrate/sequences.ts";
import { Costs } from "../engine/planning/costs.ts";
import { calibrationGains } from "../engine/planning/gains.node.ts";
import { plannableModel } from "../engine/planning/layers.ts";
import { defaultPalette, type LayerFacts, type ModelBudget } from "../engine/planning/problem.ts";
import { costProfile } from "../engine/planning/profile.node.ts";
import { measureRowFacts } from "../engine/planning/rowFacts.node.ts";
import type { RowFacts } from "../engine/planning/rows.ts";
import { sensitivities } from "../engine/sensitivity/sensitivities.node.ts";
import { UsageError } from "../errors.ts";
import { quantizerFor } from "../quantizers/registry.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { createTokenizer } from "../text/tokenizer.ts";
import { readJsonFile, readTextFile } from "./files.ts";
import { formatSeconds } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { progressLine } from "./progress.ts";

export interface BudgetFlags {
  readonly bits: number | undefined;
  readonly memory: number | undefined;
  readonly speed: number | undefined;
  readonly batch: number;
}

export interface PlannerFlags extends FactFlags {
  readonly schemes: string | undefined;
  readonly embeddingScheme: string;
  readonly batch: number;
  readonly remeasure: boolean;
}

export interface FactFlags {
  readonly sensitivities: string | undefined;
  readonly sequences: number;
  readonly calibrate: readonly string[];
  readonly threads: number | undefined;
}

/** The one budget that the flags give; undefined when they give none. */
export function budgetOf({ bits, memory, speed, batch }: BudgetFlags): ModelBudget | undefined {
  const given: ModelBudget[] = [];
  if (bits !== undefined) given.push({ bits });
  if (memory !== undefined) given.push({ bytes: memory });
  if (speed !== undefined) given.push({ tokensPerSecond: speed, batch });
  if (given.length > 1)
    throw new UsageError("--bits, --memory and --speed are budgets of their own; give one");
  return given[0];
}

/** `tcq-s-3,nuq-4` */
export function paletteOf(names: string | undefined): string[] | undefined {
  return names?.split(",").map((name) => {
    const scheme = parseScheme(name.trim());
    quantizerFor(scheme);
    return scheme.name;
  });
}

const sensitivitiesSchema = z.object({
  layers: z.array(z.object({ name: z.string(), sensitivity: z.number() })).min(1),
});

/**
 * How much each layer of a float model matters: as the file of `--sensitivities` says, or measured and then known for
 * later. For a quantization that will be calibrated, also what calibration leaves of each layer's loss.
 */
export async function layerFacts(checkpoint: Checkpoint, flags: FactFlags): Promise<LayerFacts> {
  const texts = await Promise.all(flags.calibrate.map((file) => readTextFile(file, "--calibrate")));
  const layers = flags.sensitivities
    ? await readSensitivities(flags.sensitivities)
    : await measuredSensitivities(checkpoint, texts, flags);
  const gains = texts.length > 0 ? await measuredGains(checkpoint, texts, flags) : undefined;
  return { sensitivities: new Map(layers.map(({ name, sensitivity }) => [name, sensitivity])), gains };
}

/** Tokens that tell what calibration gains: the plan's order of layers settles long before the codes do. */
const GAIN_TOKENS = 16_384;
const GAIN_SEQUENCE = 1024;

async function measuredGains(
  checkpoint: Checkpoint,
  texts: readonly string[],
  { threads }: FactFlags,
): Promise<ReadonlyMap<string, number>> {
  const { decoder } = plannableModel(checkpoint);
  if (!checkpoint.tokenizer) {
    throw new UsageError(`${checkpoint.source}: has no tokenizer to read --calibrate with`);
  }
  const tokenizer = createTokenizer(checkpoint.tokenizer, checkpoint.generationConfig);
  const sequenceLength = Math.min(GAIN_SEQUENCE, decoder.contextLength);
  const sequences = calibrationSequences(texts, tokenizer, { tokens: GAIN_TOKENS, sequenceLength });
  const line = progressLine("what calibration gains");
  try {
    const onProgress = (done: number, total: number) => line.update(done, total);
    return await calibrationGains(checkpoint, { sequences, threads, onProgress, signal: interruptible() });
  } finally {
    line.clear();
  }
}

/** What products and everything else of a step take on this machine, measured within seconds or before. */
export async function costsOf(checkpoint: Checkpoint, flags: PlannerFlags): Promise<Costs> {
  const { batch, threads, remeasure: anew } = flags;
  const schemes = paletteOf(flags.schemes) ?? defaultPalette();
  const line = progressLine("measuring times");
  try {
    const onProgress = (done: number, total: number) => line.update(done, total);
    const run = { schemes, batch, threads, anew, onProgress, signal: interruptible() };
    return new Costs(await costProfile(checkpoint, run));
  } finally {
    line.clear();
  }
}

/** What residual rows would do and take: measured anew each time, in less than a minute for small models. */
export async function rowFactsOf(checkpoint: Checkpoint, flags: PlannerFlags): Promise<RowFacts> {
  const texts = await Promise.all(flags.calibrate.map((file) => readTextFile(file, "--calibrate")));
  const line = progressLine("measuring residual rows");
  try {
    return await measureRowFacts(checkpoint, {
      texts: texts.length > 0 ? texts : undefined,
      threads: flags.threads,
      onProgress: (done, total) => line.update(done, total),
      signal: interruptible(),
    });
  } finally {
    line.clear();
  }
}

interface LayerSensitivity {
  readonly name: string;
  readonly sensitivity: number;
}

async function readSensitivities(path: string): Promise<LayerSensitivity[]> {
  const value = await readJsonFile(path, "--sensitivities", "docs/planning.md");
  const parsed = sensitivitiesSchema.safeParse(value);
  if (parsed.success) return parsed.data.layers;
  throw new UsageError(`--sensitivities ${path}: ${problemsOf(parsed.error.issues)}; see docs/planning.md`);
}

async function measuredSensitivities(
  checkpoint: Checkpoint,
  texts: readonly string[],
  { sequences, threads }: FactFlags,
): Promise<readonly LayerSensitivity[]> {
  const line = progressLine("sensitivities");
  try {
    const { layers } = await sensitivities(checkpoint, {
      ...{ sequences, threads, signal: interruptible() },
      texts: texts.length > 0 ? texts : undefined,
      onProgress: ({ phase, done, total, secondsLeft }) =>
        line.update(
          done,
          total,
          phase === "sample" ? "sampling" : `about ${formatSeconds(secondsLeft)} in all`,
        ),
    });
    return layers;
  } finally {
    line.clear();
  }
}
