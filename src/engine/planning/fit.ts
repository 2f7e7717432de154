import type { ModelPlan } from "../../budget/modelPlan.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { UsageError } from "../../errors.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { modelDigest } from "./digest.ts";
import { plannableModel } from "./layers.ts";

/** Throws a UsageError unless a plan was made for this checkpoint: its layers, all of them, and its weights. */
export async function checkFits({ choice, model }: ModelPlan, checkpoint: Checkpoint): Promise<void> {
  const { layers } = plannableModel(checkpoint);
  const known = new Set(layers.map(({ name }) => name));
  const planned = new Set(choice.flatMap((each) => each.layers));
  const other = `it was made for ${model.source}, not for ${checkpoint.source}; plan this model`;
  const unknown = [...planned].find((name) => !known.has(name));
  if (unknown !== undefined)
    throw new UsageError(`names ${unknown}, which this model does not have: ${other}`);
  const missing = layers.find(({ name }) => !planned.has(name));
  if (missing) throw new UsageError(`lacks ${missing.name}: ${other}`);
  for (const { option } of choice) parseScheme(option);
  if (model.digest !== undefined && model.digest !== (await modelDigest(checkpoint, layers))) {
    throw new UsageError(
      `is for other weights of the same shapes: ${other} (or remove "digest" from the plan)`,
    );
  }
}
