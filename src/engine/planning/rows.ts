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

type Level = (typeof ROW_LEVELS)[number];

/** What residual rows do for a model, and what they take. */
export interface RowFacts {
  readonly bits: ResidualBits;
  readonly costs: MeasuredCosts;
  /** By weight tensor: its kind, and what is left of its loss at each of {@link ROW_LEVELS}. */
  readonly layers: ReadonlyMap<string, { readonly kind: LayerKind; readonly left: readonly number[] }>;
}

/**
 * The plan of least predicted loss within a budget, with or without residual rows. Rows may add `slowdown` of the time that
 * a step of the plan without them takes; under a budget of speed that is part of the budget. Channels are raised and
 * lowered a kind of layer at a time, from the best number for all kinds alike, until nothing gains; each trial is a plan
 * of its own.
 */
export async function planWithRows(
  checkpoint: Checkpoint,
  options: PlannerOptions & { readonly costs: Costs },
  budget: ModelBudget,
  { rows, slowdown }: { readonly rows: RowFacts; readonly slowdown: number },
): Promise<ModelPlan> {
  const { batch } = options.costs.profile;
  // A budget that cannot be met without rows is an error.
  const without = await new Planner(checkpoint, options).plan(budget);
  const { tokensPerSecond } = without.predicted;
  if (tokensPerSecond === undefined) {
    const { embeddingScheme: scheme } = options;
    throw new UsageError(
      `residual rows cost time, and the time of an embedding of ${scheme} is not known; choose one of the palette's schemes for it`,
    );
  }
  const mostSeconds = (slowdown * batch) / tokensPerSecond;
  const tried = new Set<string>();
  let best = { channels: uniformShares(0), plan: without };
  const consider = async (channels: ChannelShares): Promise<boolean> => {
    const key = LAYER_KINDS.map((kind) => channels[kind]).join();
    if (tried.has(key)) return false;
    tried.add(key);
    const seconds = LAYER_KINDS.reduce((sum, kind) => sum + costOf(rows.costs, kind, channels[kind]), 0);
    if (seconds > mostSeconds) return false;
    const plan = await planOf(checkpoint, options, budget, rows, channels, seconds);
    if (!plan || plan.predicted.loss >= best.plan.predicted.loss) return false;
    best = { channels, plan };
    return true;
  };
  for (const level of ROW_LEVELS.slice(1)) await consider(uniformShares(level));
  for (let moved = true; moved; ) {
    moved = false;
    for (const kind of LAYER_KINDS) {
      const place = ROW_LEVELS.indexOf(best.channels[kind] as Level);
      for (const level of [ROW_LEVELS[place + 1], ROW_LEVELS[place - 1]]) {
        if (level !== undefined && (await consider({ ...best.channels, [kind]: level }))) moved = true;
      }
    }
  }
  const { channels } = best;
  if (LAYER_KINDS.every((kind) => channels[kind] === 0)) return best.plan;
  return { ...best.plan, compensation: { bits: rows.bits, channels: { ...channels } } };
}

/** A plan for a model whose residual rows are bought; undefined when they leave too little time. */
async function planOf(
  checkpoint: Checkpoint,
  options: PlannerOptions & { readonly costs: Costs },
  budget: ModelBudget,
  { layers }: RowFacts,
  channels: ChannelShares,
  seconds: number,
): Promise<ModelPlan | undefined> {
  const gains = new Map(options.gains);
  for (const [name, { kind, left }] of layers) {
    gains.set(name, (gains.get(name) ?? 1) * left[ROW_LEVELS.indexOf(channels[kind] as Level)]);
  }
  const { profile } = options.costs;
  const costs = new Costs({ ...profile, overheadSeconds: profile.overheadSeconds + seconds });
  try {
    return await new Planner(checkpoint, { ...options, gains, costs }).plan(budget);
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}
