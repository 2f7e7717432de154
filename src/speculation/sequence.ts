import type { TokenHistory } from "../engine/sampler/penalties.ts";
import type { Sampler } from "../engine/sampler/sampler.ts";

/**
 * A text that grows. The cache holds entries for all of its tokens but the last, whose successor is wanted.
 */
export interface Sequence extends TokenHistory {
  /** Its place in the cache. */
  readonly slot: number;
  readonly prompt: readonly number[];
  /** What a burst adds, its caller appends. */
  readonly generated: readonly number[];
  /** Most tokens that the next burst may add, at least 1. */
  readonly room: number;
  readonly sampler: Sampler;
}

/** Tokens of prompt and answer. */
export function lengthOf({ prompt, generated }: Sequence): number {
  return prompt.length + generated.length;
}

/** The token at an index of prompt and answer. */
export function tokenAt({ prompt, generated }: Sequence, index: number): number {
  return index < prompt.length ? prompt[index] : generated[index - prompt.length];
}
