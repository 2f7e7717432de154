import { randomWord } from "../../quantizers/random.ts";
import { summarizeRow } from "../evaluate/softmax.ts";
import type { LogitsGradient } from "./decoder.ts";

/**
 * A loss whose gradient by the logits is random with mean 0 and covariance diag(p) - p p^T, p being the predicted
 * distribution: the mean square of its gradient by any weight is the diagonal of the Fisher information. Labels drawn
 * from p have that covariance too, but heavy tails; sqrt(p) e - p (sqrt(p) . e) with random signs e has none.
 */
export function fisherLoss(vocabularySize: number, seed: number): LogitsGradient {
  return (logits, sequence, first) => {
    const gradient = new Float32Array(logits.length);
    for (let at = 0; at < logits.length; at += vocabularySize) {
      const stream = randomWord(seed + sequence, first + at / vocabularySize);
      drawGradient(logits, gradient, at, vocabularySize, stream);
    }
    return gradient;
  };
}

function drawGradient(
  logits: Float32Array,
  out: Float32Array,
  at: number,
  size: number,
  stream: number,
): void {
  const { logSum } = summarizeRow(logits, at, size);
  let dot = 0;
  let signs = 0;
  for (let i = 0; i < size; i++) {
    if (i % 32 === 0) signs = randomWord(stream, i / 32);
    const root = Math.exp((logits[at + i] - logSum) / 2);
    const signed = (signs >>> (i % 32)) & 1 ? root : -root;
    out[at + i] = signed;
    dot += signed;
  }
  // p = (sqrt(p) e)^2, whatever the sign; what comes out sums to 0, as softmax does not mind a common shift.
  for (let i = at; i < at + size; i++) out[i] -= out[i] * out[i] * dot;
}
