/**
 * Plans that may buy residual rows: at each step the rows of some input channels are added from slow memory
 * (docs/compensation.md). They take time and none of the memory that the weights live in.
 *
 * @module
 */
import type { ModelPlan } from "../../budget/modelPlan.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { LAYER_KINDS, type LayerKind } from "../../compensation/groups.ts";
import { type ChannelShares, uniformShares } from "../../compensation/settings.ts";
import { costOf, type MeasuredCosts } from "../../compensation/tuner.ts";
import { UsageError } from "../../errors.ts";
import type { ResidualBits } from "../../quantizers/residual.ts";
import { Costs } from "./costs.ts";
import { Planner, type PlannerOptions } from "./planner.ts";
import type { ModelBudget } from "./problem.ts";

/** Channels of 1024 that are tried. */
export const ROW_LEVELS = [0, 8, 16, 32, 64, 128, 256] as const;

/** What residual rows do for a model, and what they take. */
export interface RowFacts {
  readonly bits: ResidualBits;
  readonly costs: MeasuredCosts;
  /** By weight tensor: its kind, and what is left of its loss at each of {@link ROW_LEVELS}. */
  readonly layers: ReadonlyMap<string, { readonly kind: LayerKind; readonly left: readonly number[] }>;
}

/**
 * The plan of least predicted loss for a speed, with or without residual rows. Channels are raised and lowered a kind of
 * layer at a time, from the best number for all kinds alike, until nothing gains; each trial is a plan of its own.
 */
export async function planWithRows(
  checkpoint: Checkpoint,
  options: PlannerOptions & { readonly costs: Costs },
  budget: ModelBudget,
  rows: RowFacts,
): Promise<ModelPlan> {
  const tried = new Map<string, ModelPlan | undefined>();
  const plan = async (channels: ChannelShares): Promise<ModelPlan | undefined> => {
    const key = LAYER_KINDS.map((kind) => channels[kind]).join();
    if (!tried.has(key)) tried.set(key, await planOf(checkpoint, options, budget, rows, channels));
    return tried.get(key);
  };
  // Without rows a budget that cannot be met is an error.
  let best = { channels: uniformShares(0), plan: await plan0(checkpoint, options, budget) };
  const consider = async (channels: ChannelShares): Promise<boolean> => {
    const found = await plan(channels);
    if (!found || found.predicted.loss >= best.plan.predicted.loss) return false;
    best = { channels, plan: found };
    return true;
  };
  for (const level of ROW_LEVELS.slice(1)) await consider(uniformShares(level));
  for (let moved = true; moved; ) {
    moved = false;
    for (const kind of LAYER_KINDS) {
      const place = ROW_LEVELS.indexOf(best.channels[kind] as (typeof ROW_LEVELS)[number]);
      for (const level of [ROW_LEVELS[place + 1], ROW_LEVELS[place - 1]]) {
        if (level !== undefined && (await consider({ ...best.channels, [kind]: level }))) moved = true;
      }
    }
  }
  const { channels } = best;
  if (LAYER_KINDS.every((kind) => channels[kind] === 0)) return best.plan;
  return { ...best.plan, compensation: { bits: rows.bits, channels: { ...channels } } };
}

function plan0(checkpoint: Checkpoint, options: PlannerOptions, budget: ModelBudget): Promise<ModelPlan> {
  return new Planner(checkpoint, options).plan(budget);
}

/** A plan for a model whose residual rows are bought; undefined when they leave too little time. */
async function planOf(
  checkpoint: Checkpoint,
  options: PlannerOptions & { readonly costs: Costs },
  budget: ModelBudget,
  { costs, layers }: RowFacts,
  channels: ChannelShares,
): Promise<ModelPlan | undefined> {
  const gains = new Map(options.gains);
  for (const [name, { kind, left }] of layers) {
    const level = ROW_LEVELS.indexOf(channels[kind] as (typeof ROW_LEVELS)[number]);
    gains.set(name, (gains.get(name) ?? 1) * left[level]);
  }
  const { profile } = options.costs;
  const added = LAYER_KINDS.reduce((sum, kind) => sum + costOf(costs, kind, channels[kind]), 0);
  const overheadSeconds = profile.overheadSeconds + added;
  try {
    const slower = new Costs({ ...profile, overheadSeconds });
    return await new Planner(checkpoint, { ...options, gains, costs: slower }).plan(budget);
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}
