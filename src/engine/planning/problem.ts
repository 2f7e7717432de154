/**
 * A model, its sensitivities and what the machine can do as a problem for the solver.
 *
 * @module
 */
import type { Problem } from "../../budget/problem.ts";
import { UsageError } from "../../errors.ts";
import { distortions } from "../../quantizers/distortions.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { allSchemes, parseScheme } from "../../quantizers/scheme.ts";
import type { Costs } from "./costs.ts";
import type { PlannableLayer } from "./layers.ts";
import { fusibleSets } from "./sets.ts";

/** What the device affords. */
export type ModelBudget =
  /** Bits per weight of the linear layers' codes, as in the schemes' names; embedding and head are not planned. */
  | { readonly bits: number }
  /** Size of model.safetensors: linear layers, embedding, head, norms and header. */
  | { readonly bytes: number }
  /** Decoding speed of `batch` sequences together. */
  | { readonly tokensPerSecond: number; readonly batch: number };

/** How much each layer matters, and how much less its error hurts when it is calibrated. */
export interface LayerFacts {
  /** a_l of the linearity theorem by weight tensor: divergence per unit of relative squared error. */
  readonly sensitivities: ReadonlyMap<string, number>;
  /** By weight tensor, what calibration leaves of the loss at the same distortion; 1 where it is not known. */
  readonly gains?: ReadonlyMap<string, number>;
  /** Losses that were measured instead of predicted, by `lossKey` of weight tensor and scheme. */
  readonly losses?: ReadonlyMap<string, number>;
}

/** Where {@link LayerFacts.losses} has the loss of a weight tensor with a scheme. */
export function lossKey(layer: string, scheme: string): string {
  return `${layer} ${scheme}`;
}

/** Schemes that a plan chooses from unless told otherwise: `tcq-s` does what `tcq` does in less time. */
export function defaultPalette(): string[] {
  return allSchemes()
    .filter(({ family }) => family !== "float" && family !== "tcq")
    .map(({ name }) => name);
}

/** Bytes of a layer's codes, and of its scales. */
export function storedBytes(
  { rows, columns }: PlannableLayer,
  scheme: string,
): { codes: number; scales: number } {
  const parsed = parseScheme(scheme);
  if (parsed.family === "float") return { codes: rows * columns * 4, scales: 0 };
  return { codes: quantizerFor(parsed).codesByteLength(rows, columns), scales: rows * 4 };
}

/**
 * Predicted loss of a layer with a scheme: what was measured, else a_l times distortion. 0 for layers whose sensitivity
 * is not known.
 */
export function predictedLoss(layer: string, scheme: string, facts: LayerFacts): number {
  if (parseScheme(scheme).family === "float") return 0;
  const { sensitivities, gains, losses } = facts;
  const loss = losses?.get(lossKey(layer, scheme)) ?? (sensitivities.get(layer) ?? 0) * distortions[scheme];
  return loss * (gains?.get(layer) ?? 1);
}

export interface ProblemParts {
  /** Layers to plan. */
  readonly layers: readonly PlannableLayer[];
  readonly facts: LayerFacts;
  readonly palette: readonly string[];
  /** In the solver's terms: bits per weight over `layers`, or seconds of a step. */
  readonly budget: Problem["budget"];
  /** Whether scales count. */
  readonly scales: boolean;
  readonly costs?: Costs;
  readonly headIsTied: boolean;
  /** Seconds of layers that are not planned. */
  readonly fixedSeconds?: number;
}

/** The problem in the solver's terms. */
export function problemOf(parts: ProblemParts): Problem {
  const { layers, facts, palette, budget, scales, costs, headIsTied, fixedSeconds = 0 } = parts;
  const options = palette.map((name) => {
    const { bits } = parseScheme(name);
    if (!Object.hasOwn(distortions, name)) {
      throw new UsageError(`scheme ${name} cannot be planned with; choose quantizers, e.g. tcq-s-3,nuq-4`);
    }
    return { name, bits, distortion: distortions[name] };
  });
  const missing = layers.find(({ name }) => !facts.sensitivities.has(name));
  if (missing) {
    throw new UsageError(`the sensitivities lack ${missing.name}; estimate them for this very model`);
  }
  // A weight that does not matter, or that noise made look harmful to leave alone.
  const sensitivity = (name: string) => Math.max(0, facts.sensitivities.get(name)!);
  return {
    layers: layers.map(({ name, rows, columns, group }) => ({
      name,
      weights: rows * columns,
      sensitivity: sensitivity(name) * (facts.gains?.get(name) ?? 1),
      ...(group !== undefined && { group }),
    })),
    options,
    budget,
    measured: layers.flatMap((layer) =>
      palette.map((option) => {
        const bytes = storedBytes(layer, option);
        const size = { layer: layer.name, option, bytes: bytes.codes + (scales ? bytes.scales : 0) };
        const known = facts.losses?.has(lossKey(layer.name, option));
        return known ? { ...size, loss: predictedLoss(layer.name, option, facts) } : size;
      }),
    ),
    ...("seconds" in budget &&
      costs && {
        costs: fusibleSets(layers).flatMap((set) =>
          palette.flatMap((option) => {
            const seconds = costs.secondsOf(set, option, headIsTied);
            return seconds === undefined ? [] : [{ layers: set.map(({ name }) => name), option, seconds }];
          }),
        ),
        overheadSeconds: costs.profile.overheadSeconds + fixedSeconds,
      }),
  };
}
