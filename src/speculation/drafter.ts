import type { Sequence } from "./sequence.ts";

/** Tokens that may follow a sequence. */
export interface Draft {
  readonly ids: readonly number[];
  /** What each id was drawn from, [vocabulary] probabilities; absent when the ids were not drawn by chance. */
  readonly distributions?: readonly Float32Array[];
}

/** Guesses how sequences go on. */
export interface Drafter {
  readonly name: string;
  /** Steps of the model that a draft of one token costs: 1, or 0 for drafts that the model has no part in. */
  readonly stepsPerToken: 0 | 1;
  /** At most lengths[i] tokens to follow sequences[i]; fewer, or none, where it knows no better. */
  draft(sequences: readonly Sequence[], lengths: readonly number[]): Promise<readonly Draft[]>;
}
