import type { Attention } from "../../backends/operation.ts";

export interface AttentionArrays {
  readonly q: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly positions: Int32Array;
  readonly sequences: Int32Array;
  readonly out: Float32Array;
}

export type AttentionShape = Pick<
  Attention,
  "rows" | "heads" | "kvHeads" | "headSize" | "scale" | "window" | "softcap"
> & { readonly capacity: number };

/** softmax(scale * q . K^T) . V over the positions a row may see (Vaswani et al., 2017; grouped: Ainslie et al., 2023). */
export function attention(arrays: AttentionArrays, shape: AttentionShape): void {
  const { q, keys, values, positions, sequences, out } = arrays;
  const { rows, heads, kvHeads, headSize, scale, window, softcap, capacity } = shape;
  for (let row = 0; row < rows; row++) {
    const position = positions[row];
    const first = window ? Math.max(0, position - window + 1) : 0;
    for (let head = 0; head < heads; head++) {
      const at = (row * heads + head) * headSize;
      const kvHead = Math.floor((head * kvHeads) / heads);
      const base = (sequences[row] * kvHeads + kvHead) * capacity * headSize;
      const scores: number[] = [];
      for (let p = first; p <= position; p++) {
        let score = 0;
        for (let d = 0; d < headSize; d++) score += q[at + d] * keys[base + p * headSize + d];
        score *= scale;
        scores.push(softcap ? softcap * Math.tanh(score / softcap) : score);
      }
      const largest = scores.reduce((a, b) => Math.max(a, b));
      const weights = scores.map((score) => Math.exp(score - largest));
      const total = weights.reduce((a, b) => a + b);
      for (let d = 0; d < headSize; d++) {
        let sum = 0;
        for (let i = 0; i < weights.length; i++)
          sum += weights[i] * values[base + (first + i) * headSize + d];
        out[at + d] = sum / total;
      }
    }
  }
}
