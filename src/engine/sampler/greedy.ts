import { HalftoneError } from "../../errors.ts";

/** The forward pass gave logits from which nothing can be sampled. */
export class LogitsError extends HalftoneError {
  override name = "LogitsError";
}

/**
 * The id of the largest logit, the lowest id among equals.
 *
 * @throws LogitsError when a logit is NaN or +Infinity, or all are -Infinity.
 */
export function argmax(logits: Float32Array): number {
  let best = -1;
  let largest = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id];
    if (logit > largest) {
      largest = logit;
      best = id;
    } else if (Number.isNaN(logit)) {
      throw new LogitsError(
        `logit ${id} of ${logits.length} is NaN: the weights or the computation are damaged`,
      );
    }
  }
  if (largest === Infinity) {
    throw new LogitsError(
      `logit ${best} of ${logits.length} is infinite: the weights or the computation are damaged`,
    );
  }
  if (best === -1) {
    throw new LogitsError(
      `none of the ${logits.length} tokens can be chosen: all logits are -Infinity (check logitBias)`,
    );
  }
  return best;
}
