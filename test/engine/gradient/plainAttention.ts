import type { AttentionInputs } from "../../../src/engine/gradient/attention.ts";
import type { AttentionShape } from "../../../src/ops/attention/reference.ts";

/** From `dOut` [rows, heads * headSize], the gradients of the inputs, one score after another. */
export function plainAttentionGradient(
  { q, keys, values }: AttentionInputs,
  dOut: Float32Array,
  shape: Omit<AttentionShape, "capacity">,
): AttentionInputs {
  const { rows, heads, kvHeads, headSize, scale, window, softcap } = shape;
  const stride = kvHeads * headSize;
  const dq = new Float32Array(q.length);
  const dKeys = new Float32Array(keys.length);
  const dValues = new Float32Array(values.length);
  const weights = new Float64Array(rows);
  const slopes = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const first = window ? Math.max(0, row - window + 1) : 0;
    for (let head = 0; head < heads; head++) {
      const at = (row * heads + head) * headSize;
      const kvAt = Math.floor((head * kvHeads) / heads) * headSize;
      let largest = -Infinity;
      for (let p = first; p <= row; p++) {
        let score = scale * dot(q, at, keys, p * stride + kvAt, headSize);
        slopes[p] = scale;
        if (softcap) {
          const t = Math.tanh(score / softcap);
          score = softcap * t;
          slopes[p] = scale * (1 - t * t);
        }
        weights[p] = score;
        if (score > largest) largest = score;
      }
      let total = 0;
      for (let p = first; p <= row; p++) {
        weights[p] = Math.exp(weights[p] - largest);
        total += weights[p];
      }
      // The mean of dOut . value under the weights: softmax's gradient is the difference from it.
      let mean = 0;
      for (let p = first; p <= row; p++) {
        weights[p] /= total;
        const pull = dot(dOut, at, values, p * stride + kvAt, headSize);
        mean += weights[p] * pull;
        slopes[p] *= weights[p];
        accumulate(dValues, p * stride + kvAt, weights[p], dOut, at, headSize);
        weights[p] = pull;
      }
      for (let p = first; p <= row; p++) {
        const slope = slopes[p] * (weights[p] - mean);
        accumulate(dq, at, slope, keys, p * stride + kvAt, headSize);
        accumulate(dKeys, p * stride + kvAt, slope, q, at, headSize);
      }
    }
  }
  return { q: dq, keys: dKeys, values: dValues };
}

function dot(a: Float32Array, i: number, b: Float32Array, j: number, count: number): number {
  let [even, odd] = [0, 0];
  let d = 0;
  for (; d + 1 < count; d += 2) {
    even += a[i + d] * b[j + d];
    odd += a[i + d + 1] * b[j + d + 1];
  }
  return d < count ? even + odd + a[i + d] * b[j + d] : even + odd;
}

/** target += factor * x */
function accumulate(
  target: Float32Array,
  i: number,
  factor: number,
  x: Float32Array,
  j: number,
  n: number,
): void {
  for (let d = 0; d < n; d++) target[i + d] += factor * x[j + d];
}
