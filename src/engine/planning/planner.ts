/**
 * Plans a model: which quantizer each of its layers gets, and which are fused, within what the device affords.
 *
 * @module
 */
import { type ModelPlan, PLAN_FORMAT, PLAN_VERSION } from "../../budget/modelPlan.ts";
import type { Choice } from "../../budget/plan.ts";
import type { Problem } from "../../budget/problem.ts";
import { leastBudget, solve } from "../../budget/solve.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { UsageError } from "../../errors.ts";
import { plannedBytes } from "../quantize/entries.ts";
import { planTensors } from "../quantize/plan.ts";
import type { Costs } from "./costs.ts";
import { modelDigest } from "./digest.ts";
import { type PlannableLayer, plannableModel } from "./layers.ts";
import {
  defaultPalette,
  type LayerFacts,
  type ModelBudget,
  predictedLoss,
  problemOf,
  storedBytes,
} from "./problem.ts";
import { fuseEqual } from "./sets.ts";

export interface PlannerOptions extends LayerFacts {
  /** Schemes to choose from; default {@link defaultPalette}. */
  readonly palette?: readonly string[];
  /** Of embedding and head where the budget does not plan them: under bits, or where their sensitivity is not known. */
  readonly embeddingScheme: string;
  /** Needed for a budget of speed; else it predicts the speed. */
  readonly costs?: Costs;
}

/** A plan stays this much below the step time that a speed asks for: what measuring it anew may differ. */
const SPEED_MARGIN = 0.06;

/** Plans one model for any number of budgets. */
export class Planner {
  readonly layers: readonly PlannableLayer[];
  readonly headIsTied: boolean;
  readonly #checkpoint: Checkpoint;
  readonly #options: PlannerOptions;
  /** Schemes to choose from. */
  readonly palette: readonly string[];
  #digest: Promise<string> | undefined;

  /** Throws a UsageError when the checkpoint is quantized already. */
  constructor(checkpoint: Checkpoint, options: PlannerOptions) {
    const { layers, decoder } = plannableModel(checkpoint);
    this.layers = layers;
    this.headIsTied = decoder.head === decoder.embedding;
    this.#checkpoint = checkpoint;
    this.#options = options;
    this.palette = options.palette ?? defaultPalette();
  }

  /** Throws a UsageError for a budget that no plan meets; it says the least that one does. */
  async plan(budget: ModelBudget): Promise<ModelPlan> {
    const planned = this.#planned(budget);
    const problem = this.#problem(budget, planned);
    await this.#checkFeasible(budget, problem);
    const solved = await solve(problem);
    const { objective, bound, gap, idealObjective, distortionGap, allocationGap } = solved;
    const optionOf = new Map(
      solved.choice.flatMap(({ layers, option }) => layers.map((name) => [name, option])),
    );
    const fixed = this.layers.filter((layer) => !planned.includes(layer));
    for (const { name } of fixed) optionOf.set(name, this.#options.embeddingScheme);
    const choice =
      "tokensPerSecond" in budget
        ? [...solved.choice, ...fuseEqual(fixed, optionOf)]
        : fuseEqual(this.layers, optionOf);
    this.#digest ??= modelDigest(this.#checkpoint, this.layers);
    return {
      format: PLAN_FORMAT,
      version: PLAN_VERSION,
      model: { source: this.#checkpoint.source, digest: await this.#digest },
      budget,
      choice,
      predicted: this.predict(choice),
      ...{ objective, bound, gap, idealObjective, distortionGap, allocationGap },
    };
  }

  /** Throws a UsageError for a budget that no plan meets. */
  check(budget: ModelBudget): Promise<void> {
    return this.#checkFeasible(budget, this.#problem(budget, this.#planned(budget)));
  }

  /** The plan that gives every linear layer one scheme, and the ends theirs. */
  singleScheme(scheme: string, embeddingScheme = this.#options.embeddingScheme): Choice[] {
    const option = ({ role }: PlannableLayer) => (role === "linear" ? scheme : embeddingScheme);
    return fuseEqual(this.layers, new Map(this.layers.map((layer) => [layer.name, option(layer)])));
  }

  /** What a choice of all layers will weigh, lose and take. */
  predict(choice: readonly Choice[]): ModelPlan["predicted"] {
    const optionOf = new Map(choice.flatMap(({ layers, option }) => layers.map((name) => [name, option])));
    const linear = this.layers.filter(({ role }) => role === "linear");
    const bytesOf = (layer: PlannableLayer) => {
      const { codes, scales } = storedBytes(layer, optionOf.get(layer.name)!);
      return codes + scales;
    };
    const { costs } = this.#options;
    const seconds = costs?.stepSeconds(choice, this.layers, this.headIsTied);
    return {
      bytes: this.#fileBytes(choice),
      linearBits: (8 * total(linear, bytesOf)) / total(linear, weightsOf),
      // Losses measured around a bad model may fall by more than it had.
      loss: Math.max(
        0,
        total(this.layers, ({ name }) => predictedLoss(name, optionOf.get(name)!, this.#options)),
      ),
      ...(seconds !== undefined && { tokensPerSecond: costs!.profile.batch / seconds }),
    };
  }

  /** Bits per weight of the linear layers' codes: what a budget of bits counts. */
  linearBits(choice: readonly Choice[]): number {
    const optionOf = new Map(choice.flatMap(({ layers, option }) => layers.map((name) => [name, option])));
    const linear = this.layers.filter(({ role }) => role === "linear");
    return (
      (8 * total(linear, (layer) => storedBytes(layer, optionOf.get(layer.name)!).codes)) /
      total(linear, weightsOf)
    );
  }

  /** The least and the most that a budget of a kind can usefully be: bits, or bytes, or tokens per second. */
  async range(kind: "bits" | "bytes" | "tokensPerSecond"): Promise<{ least: number; most: number }> {
    const probe =
      kind === "tokensPerSecond" ? { tokensPerSecond: 1e-9, batch: this.#batch } : { [kind]: 1e15 };
    const budget = probe as ModelBudget;
    const planned = this.#planned(budget);
    const problem = this.#problem("bits" in budget ? { bits: 8 } : budget, planned);
    const least = await leastBudget(problem);
    const most = Math.max(
      ...this.palette.map((scheme) => total(planned, (layer) => bytesOf(layer, scheme, kind))),
    );
    if (kind === "bits") return { least, most: (8 * most) / total(planned, weightsOf) };
    if (kind === "bytes") {
      const fixed = this.#fixedBytes(planned);
      return { least: Math.ceil((least * total(planned, weightsOf)) / 8) + fixed, most: most + fixed };
    }
    const alone = (problem.costs ?? []).filter(({ layers }) => layers.length === 1);
    const slowest = total(planned, ({ name }) =>
      Math.max(...alone.filter(({ layers }) => layers[0] === name).map(({ seconds }) => seconds)),
    );
    const promised = (seconds: number) => (this.#batch / seconds) * (1 - SPEED_MARGIN);
    return { least: promised(slowest + (problem.overheadSeconds ?? 0)), most: promised(least) };
  }

  get #batch(): number {
    return this.#options.costs?.profile.batch ?? 1;
  }

  #planned(budget: ModelBudget): PlannableLayer[] {
    const { sensitivities } = this.#options;
    return this.layers.filter(
      ({ name, role }) => role === "linear" || (!("bits" in budget) && sensitivities.has(name)),
    );
  }

  #problem(budget: ModelBudget, planned: readonly PlannableLayer[]): Problem {
    const { costs, embeddingScheme } = this.#options;
    const common = {
      layers: planned,
      facts: this.#options,
      palette: this.palette,
      headIsTied: this.headIsTied,
    };
    if ("bits" in budget) return problemOf({ ...common, budget, scales: false });
    if ("bytes" in budget) {
      const bytes = Math.max(1, budget.bytes - this.#fixedBytes(planned));
      const bits = Math.min(64, (8 * bytes) / total(planned, weightsOf));
      return problemOf({ ...common, budget: { bits }, scales: true });
    }
    if (!costs) throw new UsageError("a budget of speed needs a cost profile of this machine");
    const fixed = this.layers.filter((layer) => !planned.includes(layer));
    const fixedSeconds = total(
      fixed,
      (layer) => costs.secondsOf([layer], embeddingScheme, this.headIsTied) ?? 0,
    );
    const seconds = (budget.batch / budget.tokensPerSecond) * (1 - SPEED_MARGIN);
    return problemOf({ ...common, budget: { seconds }, scales: true, costs, fixedSeconds });
  }

  async #checkFeasible(budget: ModelBudget, problem: Problem): Promise<void> {
    const least = await leastBudget(problem);
    const given = "seconds" in problem.budget ? problem.budget.seconds : problem.budget.bits;
    if (least <= given * (1 + 1e-9)) return;
    const planned = this.#planned(budget);
    if ("bits" in budget) {
      throw new UsageError(`${budget.bits} bits per weight are too few; the least is ${roundUp(least)}`);
    }
    if ("bytes" in budget) {
      const bytes = Math.ceil((least * total(planned, weightsOf)) / 8) + this.#fixedBytes(planned);
      throw new UsageError(
        `${budget.bytes} bytes are too few for this model; with the smallest scheme everywhere it takes ${bytes}`,
      );
    }
    const most = (budget.batch / least) * (1 - SPEED_MARGIN);
    throw new UsageError(
      `${budget.tokensPerSecond} tokens per second cannot be had here; the fastest plan makes ${Number(most.toPrecision(3))}`,
    );
  }

  /** Bytes of the file that are not codes and scales of planned layers, with the longest header there can be. */
  #fixedBytes(planned: readonly PlannableLayer[]): number {
    const largest = this.palette.reduce((a, b) =>
      total(planned, (layer) => bytesOf(layer, b)) > total(planned, (layer) => bytesOf(layer, a)) ? b : a,
    );
    const choice = this.layers.map((layer) => ({
      layers: [layer.name],
      option: planned.includes(layer) ? largest : this.#options.embeddingScheme,
    }));
    return this.#fileBytes(choice) - total(planned, (layer) => bytesOf(layer, largest));
  }

  #fileBytes(choice: readonly Choice[]): number {
    return plannedBytes(this.#checkpoint, planTensors(this.#checkpoint, { scheme: "f32", choice }));
  }
}

function bytesOf(layer: PlannableLayer, scheme: string, kind?: string): number {
  const { codes, scales } = storedBytes(layer, scheme);
  return kind === "bits" ? codes : codes + scales;
}

function weightsOf({ rows, columns }: PlannableLayer): number {
  return rows * columns;
}

function total<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}

/** Three decimals, so rounded that the budget is feasible. */
function roundUp(bits: number): number {
  return Math.ceil(bits * 1000 - 1e-6) / 1000;
}
