import type { BosRule } from "../../text/bos.ts";
import type { Sequences } from "../sequences.ts";

/** How sensitivities are measured. */
export interface SensitivityOptions {
  /**
   * `gradient` (default) reads all sensitivities off one pass forth and back; `noise` adds Gaussian noise to one weight
   * tensor at a time (HIGGS, Q-Palette section E.1), which takes 10 to 100 times as long.
   */
  readonly method?: SensitivityMethod;
  /** Texts like those the model will read, or token sequences as they are; default samples of the model itself. */
  readonly texts?: readonly string[];
  readonly ids?: Sequences;
  /** Begins every sequence of the texts with the beginning-of-sequence token; default as the tokenizer's config says. */
  readonly bos?: BosRule;
  /** Sequences, each from an empty cache. Default 16. */
  readonly sequences?: number;
  /** Tokens of a sequence. Default 256, or the model's context where it is shorter. */
  readonly sequenceLength?: number;
  /** Of `noise`, relative to the norm of the weights. Default .1 and .2. */
  readonly norms?: readonly number[];
  /** Of samples and noise. Default 0. */
  readonly seed?: number;
}

export type SensitivityMethod = "gradient" | "noise";

export const DEFAULT_SEQUENCES = 16;
export const DEFAULT_SEQUENCE_LENGTH = 256;
export const DEFAULT_NORMS: readonly number[] = [0.1, 0.2];

/** How much a weight tensor matters. */
export interface LayerSensitivity {
  /** Hugging Face name of the tensor. */
  readonly name: string;
  readonly weights: number;
  /**
   * a of the linearity theorem: Kullback-Leibler divergence from the float model, in nats per token, per unit of
   * relative squared error |W - Q(W)|^2 / |W|^2. A plan's predicted loss is the sum of a times distortion.
   */
  readonly sensitivity: number;
  /** Of the sensitivity, from the spread over sequences; 0 for a single one. */
  readonly standardError: number;
  /** What calibration leaves of the loss at the same distortion, where it was asked for; 1 where it does not apply. */
  readonly calibrationGain?: number;
}

export interface Sensitivities {
  readonly method: SensitivityMethod;
  /** What the model read: samples of itself, or given texts. */
  readonly data: "samples" | "texts";
  readonly tokens: number;
  /** In the order of use; a tied embedding once. */
  readonly layers: readonly LayerSensitivity[];
}

/** What some of the sequences say: sensitivities in the order of the weight tensors. */
export interface SensitivityPart {
  readonly tokens: number;
  readonly values: readonly number[];
}
