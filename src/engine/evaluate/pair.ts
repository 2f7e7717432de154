import type { Tokenizer } from "../../text/tokenizer.ts";

export interface EncodedPair {
  readonly context: number[];
  readonly continuation: number[];
}

/**
 * Token ids of a context and what follows it, as lm-evaluation-harness cuts them: both are encoded together,
 * the context alone says where to cut, and its trailing white space goes to the continuation.
 */
export function encodePair(tokenizer: Tokenizer, context: string, continuation: string): EncodedPair {
  const kept = context.trimEnd();
  const ids = tokenizer.encode(kept);
  const whole = tokenizer.encode(context + continuation);
  return { context: ids, continuation: whole.slice(ids.length) };
}
