import type { BosRule } from "../../text/bos.ts";
import type { Sequences } from "../sequences.ts";

/** How a quantized model is tuned: its row scales and norm weights, towards the float model's predictions. */
export interface TuneOptions {
  /** Steps of the optimizer. */
  readonly steps: number;
  /** Tokens of a step. Default 1024. */
  readonly tokens?: number;
  /**
   * Texts like those the model will see, or token sequences as they are. Default: what calibration is given
   * to read; else samples of the float model.
   */
  readonly texts?: readonly string[];
  readonly ids?: Sequences;
  /** Starts every sequence with the beginning-of-sequence token; default as for calibration. */
  readonly bos?: BosRule;
  /** Tokens of a sequence. Default 256, or the model's context where it is shorter. */
  readonly sequenceLength?: number;
  /** Largest change of a parameter in one step, relative. Default .004. */
  readonly rate?: number;
  /** Of the order of the sequences, and of samples. Default 0. */
  readonly seed?: number;
}

export const DEFAULT_TUNE_TOKENS = 1024;
export const DEFAULT_TUNE_RATE = 0.004;
export const DEFAULT_TUNE_LENGTH = 256;

/** What tuning did, in nats per token over tokens that it did not learn from. */
export interface TuneResult {
  /** Kullback-Leibler divergence of the predictions from the float model's. */
  readonly divergenceBefore: number;
  readonly divergenceAfter: number;
  /** After which step the kept state was found; 0 when no step made the model better. */
  readonly bestStep: number;
  /** Tokens that were learnt from, each sequence once, and those held out. */
  readonly trainingTokens: number;
  readonly heldOutTokens: number;
}

/** All of the options but the text, complete. */
export function tuneSettings(
  options: TuneOptions,
): Required<Pick<TuneOptions, "steps" | "tokens" | "rate" | "seed">> {
  const { steps, tokens = DEFAULT_TUNE_TOKENS, rate = DEFAULT_TUNE_RATE, seed = 0 } = options;
  return { steps, tokens, rate, seed };
}
