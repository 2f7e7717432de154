/**
 * From flags to what a planner needs.
 *
 * @module
 */
import { z } from "zod";
import { problemsOf } from "../budget/problem.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { balanceCheckpoint } from "../engine/balance/balance.node.ts";
import { Costs } from "../engine/planning/costs.ts";
import { defaultPalette, type LayerFacts, lossKey, type ModelBudget } from "../engine/planning/problem.ts";
import { costProfile } from "../engine/planning/profile.node.ts";
import { measureRowFacts } from "../engine/planning/rowFacts.node.ts";
import type { RowFacts } from "../engine/planning/rows.ts";
import type { SensitivityOptions } from "../engine/sensitivity/options.ts";
import { sensitivities } from "../engine/sensitivity/sensitivities.node.ts";
import { UsageError } from "../errors.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import type { BosRule } from "../text/bos.ts";
import { calibrationText } from "./calibrationText.ts";
import { readJsonFile } from "./files.ts";
import { formatSeconds } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { withProgress } from "./progress.ts";
import { schemesNamed } from "./schemes.ts";

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
  readonly bos: BosRule;
  readonly noBalance: boolean;
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

/** Names of the quantizers that a flag lists; undefined where it is not given. */
export function paletteOf(names: string | undefined): string[] | undefined {
  return names === undefined ? undefined : schemesNamed(names).map(({ name }) => name);
}

const layerSchema = z.object({
  name: z.string(),
  sensitivity: z.number(),
  calibrationGain: z.number().optional(),
});

type LayerFact = z.infer<typeof layerSchema>;

const sensitivitiesSchema = z.object({
  layers: z.array(layerSchema).min(1),
  measured: z.array(z.object({ layer: z.string(), option: z.string(), loss: z.number() })).optional(),
});

/** The float model as quantizing will round it: balanced, unless it will be calibrated or the flags say otherwise. */
export async function modelToRound(
  checkpoint: Checkpoint,
  { calibrate, noBalance, threads }: Pick<FactFlags, "calibrate" | "noBalance" | "threads">,
): Promise<Checkpoint> {
  if (noBalance || calibrate.length > 0) return checkpoint;
  return withProgress("balancing", (line) =>
    balanceCheckpoint(checkpoint, { threads, onProgress: line.update, signal: interruptible() }),
  );
}

/**
 * How much each layer of a float model matters: as the file of `--sensitivities` says, or measured and then known for
 * later. For a quantization that will be calibrated, also what calibration leaves of each layer's loss.
 */
export async function layerFacts(checkpoint: Checkpoint, flags: FactFlags): Promise<LayerFacts> {
  const calibration = await calibrationText(flags.calibrate);
  const given = flags.sensitivities !== undefined ? await readSensitivities(flags.sensitivities) : undefined;
  const calibrated = calibration !== undefined;
  const gainOf = (layers: readonly LayerFact[]) =>
    new Map(layers.map(({ name, calibrationGain = 1 }) => [name, calibrationGain]));
  const complete = given?.layers.some(({ calibrationGain }) => calibrationGain !== undefined) || !calibrated;
  const found = given && complete ? undefined : await measuredFacts(checkpoint, calibration, flags);
  const { layers, measured = [] } = given ?? { layers: found! };
  return {
    sensitivities: new Map(layers.map(({ name, sensitivity }) => [name, sensitivity])),
    gains: calibrated ? gainOf(found ?? layers) : undefined,
    losses: new Map(measured.map(({ layer, option, loss }) => [lossKey(layer, option), loss])),
  };
}

/**
 * What products and everything else of a step take on this machine, measured within seconds or before.
 *
 * @param embeddingScheme of embedding and head, where the palette is not for them
 */
export async function costsOf(
  checkpoint: Checkpoint,
  flags: PlannerFlags,
  embeddingScheme?: string,
): Promise<Costs> {
  const { batch, threads, remeasure: anew } = flags;
  const palette = paletteOf(flags.schemes) ?? defaultPalette();
  const timed = embeddingScheme !== undefined && parseScheme(embeddingScheme).family !== "float";
  const schemes = timed ? [...new Set([...palette, embeddingScheme])] : palette;
  const run = { schemes, batch, threads, anew, signal: interruptible() };
  const profile = await withProgress("measuring times", (line) =>
    costProfile(checkpoint, { ...run, onProgress: line.update }),
  );
  return new Costs(profile);
}

/** What residual rows would do and take: measured anew each time, in less than a minute for small models. */
export async function rowFactsOf(checkpoint: Checkpoint, flags: PlannerFlags): Promise<RowFacts> {
  const text = await calibrationText(flags.calibrate);
  const run = { ...text, threads: flags.threads, signal: interruptible() };
  return withProgress("measuring residual rows", (line) =>
    measureRowFacts(checkpoint, { ...run, onProgress: line.update }),
  );
}

async function readSensitivities(path: string): Promise<z.infer<typeof sensitivitiesSchema>> {
  const value = await readJsonFile(path, "--sensitivities", "docs/planning.md");
  const parsed = sensitivitiesSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new UsageError(`--sensitivities ${path}: ${problemsOf(parsed.error.issues)}; see docs/planning.md`);
}

async function measuredFacts(
  checkpoint: Checkpoint,
  calibration: Pick<SensitivityOptions, "texts"> | undefined,
  { sequences, bos, threads }: FactFlags,
): Promise<readonly LayerFact[]> {
  const { layers } = await withProgress("sensitivities", (line) =>
    sensitivities(checkpoint, {
      ...{ sequences, threads, signal: interruptible() },
      ...(calibration && { ...calibration, bos, gains: true }),
      onProgress: ({ phase, done, total, secondsLeft }) =>
        line.update(
          done,
          total,
          phase === "measure"
            ? `about ${formatSeconds(secondsLeft)} in all`
            : { sample: "sampling", gains: "what calibration gains" }[phase],
        ),
    }),
  );
  return layers;
}
