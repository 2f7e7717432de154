import { UsageError } from "../../errors.ts";

/**
 * Adds a bias to the logits of some tokens, in place (OpenAI's `logit_bias`).
 *
 * @throws UsageError for an id outside the vocabulary.
 */
export function addLogitBias(
  logits: Float32Array,
  biases: readonly (readonly [id: number, bias: number])[],
): void {
  for (const [id, bias] of biases) {
    if (id >= logits.length) {
      throw new UsageError(`logitBias names token ${id}: the vocabulary has ${logits.length} tokens`);
    }
    logits[id] += bias;
  }
}
