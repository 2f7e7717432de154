import type { ModelPlan } from "../budget/modelPlan.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { formatShares, parseShare } from "../compensation/settings.ts";
import { plannableModel } from "../engine/planning/layers.ts";
import { Planner, type PlannerOptions } from "../engine/planning/planner.ts";
import type { ModelBudget } from "../engine/planning/problem.ts";
import { planWithRows } from "../engine/planning/rows.ts";
import { UsageError } from "../errors.ts";
import {
  budgetOf,
  costsOf,
  layerFacts,
  modelToRound,
  type PlannerFlags,
  paletteOf,
  rowFactsOf,
} from "./budget.ts";
import { checkWritable, writeJsonFile, writeTextFile } from "./files.ts";
import type { planFlags } from "./flags.ts";
import { formatBytes, significant } from "./format.ts";
import { openModel } from "./model.ts";
import { print, printJson, remark } from "./output.ts";
import { drawMix } from "./planPicture.ts";
import type { Invocation } from "./verb.ts";

/** `halftone plan MODEL`: spends a budget over a model's layers. */
export async function planModel(name: string, { flags }: Invocation<typeof planFlags>): Promise<void> {
  const budget = budgetOf(flags);
  if (budget === undefined)
    throw new UsageError("nothing to spend; give --bits N, --memory SIZE or --speed N");
  await checkWritable(flags.output, "-o");
  await checkWritable(flags.plot, "--plot");
  const checkpoint = await openModel(name);
  try {
    const { plan } = await makePlan(checkpoint, budget, flags, true);
    if (flags.output !== undefined) {
      await writeJsonFile(flags.output, plan, "-o");
      remark(`${flags.output} written`);
    }
    if (flags.plot !== undefined) {
      const { mixPlot } = await import("./planPlot.ts");
      await writeTextFile(flags.plot, mixPlot(plan, name), "--plot");
      remark(`${flags.plot} written`);
    }
    if (flags.json) return await printJson(plan);
    await print(`${summaryOf(name, plan)}\n${drawMix(plan.choice)}`);
  } finally {
    await checkpoint.close();
  }
}

/** Plans a model as the flags say, and gives what was measured too; `timed` predicts the speed whatever the budget is. */
export async function makePlan(
  checkpoint: Checkpoint,
  budget: ModelBudget,
  flags: PlannerFlags & { readonly rows: string | undefined },
  timed = false,
): Promise<{ readonly plan: ModelPlan; readonly measured: Checkpoint }> {
  const slowdown = flags.rows === undefined ? undefined : parseShare(flags.rows, "--rows");
  if (slowdown !== undefined && flags.batch > 1) {
    throw new UsageError("--rows are measured for one sequence; leave out --batch");
  }
  const palette = paletteOf(flags.schemes);
  const { embeddingScheme } = flags;
  if (!("tokensPerSecond" in budget)) await checkSize(checkpoint, budget, { palette, embeddingScheme });
  const measures = flags.sensitivities === undefined || slowdown !== undefined;
  const measured = measures ? await modelToRound(checkpoint, flags) : checkpoint;
  const facts = await layerFacts(measured, flags);
  const needsTimes = timed || slowdown !== undefined || "tokensPerSecond" in budget;
  const fixedScheme = "bits" in budget ? embeddingScheme : undefined;
  const costs = needsTimes ? await costsOf(checkpoint, flags, fixedScheme) : undefined;
  const options = { ...facts, palette, embeddingScheme, costs };
  const plan =
    costs && slowdown !== undefined
      ? await planWithRows(checkpoint, { ...options, costs }, budget, {
          rows: await rowFactsOf(measured, flags),
          slowdown,
        })
      : await new Planner(checkpoint, options).plan(budget);
  return { plan, measured };
}

/** Refuses a size that no plan has, before anything is measured. */
async function checkSize(
  checkpoint: Checkpoint,
  budget: ModelBudget,
  options: Pick<PlannerOptions, "palette" | "embeddingScheme">,
): Promise<void> {
  const { layers } = plannableModel(checkpoint);
  const sensitivities = new Map(layers.map(({ name }) => [name, 1]));
  await new Planner(checkpoint, { ...options, sensitivities }).check(budget);
}

/** What a plan promises, in two or three lines. */
function summaryOf(name: string, plan: ModelPlan): string {
  const { predicted, bound, objective, gap, compensation } = plan;
  const { bytes, linearBits, loss, tokensPerSecond } = predicted;
  const speed = tokensPerSecond === undefined ? "" : `, ${significant(tokensPerSecond)} tokens/s`;
  return (
    `${name}: ${formatBytes(bytes)} (${bytes} bytes), linear layers at ${linearBits.toFixed(3)} bits with scales${speed}\n` +
    `predicted loss ${significantly(loss)} nats per token; of what was planned ${significantly(objective)}, ` +
    `and no plan is below ${significantly(bound)} (gap ${(100 * gap).toFixed(3)}%)\n` +
    (compensation ? `compensated channels of 1024: ${formatShares(compensation.channels)}\n` : "")
  );
}

function significantly(value: number): string {
  return String(Number(value.toPrecision(4)));
}
