/** The tokens so far. */
export interface TokenHistory {
  readonly prompt: ArrayLike<number>;
  readonly generated: ArrayLike<number>;
}

export interface Penalties {
  readonly repetitionPenalty: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
}

/**
 * Applies the penalties in place, as vLLM does: first repetition, once for each distinct token of prompt and
 * answer (a positive logit is divided by the penalty, a negative one multiplied; transformers does the same),
 * then frequency and presence, which look at the answer only. Ids outside the logits are ignored.
 */
export function applyPenalties(logits: Float32Array, history: TokenHistory, penalties: Penalties): void {
  const { repetitionPenalty, presencePenalty, frequencyPenalty } = penalties;
  const counts = countTokens(history.generated);
  if (repetitionPenalty !== 1) {
    const distinct = new Set(counts.keys());
    for (let i = 0; i < history.prompt.length; i++) distinct.add(history.prompt[i]);
    for (const id of distinct) {
      logits[id] = logits[id] > 0 ? logits[id] / repetitionPenalty : logits[id] * repetitionPenalty;
    }
  }
  if (presencePenalty !== 0 || frequencyPenalty !== 0) {
    for (const [id, count] of counts) logits[id] -= frequencyPenalty * count + presencePenalty;
  }
}

function countTokens(ids: ArrayLike<number>): Map<number, number> {
  const counts = new Map<number, number>();
  for (let i = 0; i < ids.length; i++) counts.set(ids[i], (counts.get(ids[i]) ?? 0) + 1);
  return counts;
}
