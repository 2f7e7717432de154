/**
 * From flags to what a planner needs.
 *
 * @module
 */
import { z } from "zod";
import { problemsOf } from "../budget/problem.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { LayerFacts, ModelBudget } from "../engine/planning/problem.ts";
import { UsageError } from "../errors.ts";
import { quantizerFor } from "../quantizers/registry.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { readJsonFile, required } from "./files.ts";

export interface BudgetFlags {
  readonly bits: number | undefined;
  readonly memory: number | undefined;
  readonly sensitivities: string | undefined;
}

/** The one budget that the flags give; undefined when they give none. */
export function budgetOf({ bits, memory }: BudgetFlags): ModelBudget | undefined {
  const given: ModelBudget[] = [];
  if (bits !== undefined) given.push({ bits });
  if (memory !== undefined) given.push({ bytes: memory });
  if (given.length > 1) throw new UsageError("--bits and --memory are two budgets; give one");
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

/** What is known of a model's layers. */
export async function layerFacts(_checkpoint: Checkpoint, flags: BudgetFlags): Promise<LayerFacts> {
  const path = required(flags.sensitivities, "--sensitivities FILE");
  const value = await readJsonFile(path, "--sensitivities", "docs/planning.md");
  const parsed = sensitivitiesSchema.safeParse(value);
  if (!parsed.success) {
    throw new UsageError(`--sensitivities ${path}: ${problemsOf(parsed.error.issues)}; see docs/planning.md`);
  }
  return { sensitivities: new Map(parsed.data.layers.map(({ name, sensitivity }) => [name, sensitivity])) };
}
