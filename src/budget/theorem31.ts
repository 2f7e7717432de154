/**
 * What ideal quantizers could do: Theorem 3.1 of the Q-Palette paper, and the gap to it (its section B).
 *
 * @module
 */

/** The part of a layer that the theorem needs. */
export interface IdealLayer {
  readonly weights: number;
  readonly sensitivity: number;
}

/**
 * Bits per weight of each layer that minimize the sum of a_l 2^(-2 b_l), for quantizers on the distortion-rate bound
 * at any bits from `least` up: b_l = max(least, ln(a_l / weights_l) / (2 ln 2) + C), with the C that spends the budget.
 * A layer of sensitivity 0 stays at `least`.
 *
 * @param budget bits of all weights together; what is below `least` per weight counts as `least`
 */
export function idealBits(layers: readonly IdealLayer[], budget: number, least: number): Float64Array {
  const bits = new Float64Array(layers.length).fill(least);
  const wish = layers.map(({ sensitivity, weights }) => (Math.log2(sensitivity) - Math.log2(weights)) / 2);
  const order = layers.map((_, i) => i).filter((i) => layers[i].sensitivity > 0);
  order.sort((a, b) => wish[b] - wish[a]);
  const spare = budget - least * layers.reduce((sum, { weights }) => sum + weights, 0);
  if (spare <= 0) return bits;
  // Fill from the most sensitive layer on: the level C sinks as layers join, until the next one would not rise.
  let [weights, wished, level] = [0, 0, Infinity];
  let count = 0;
  for (const layer of order) {
    if (wish[layer] + level <= least) break;
    weights += layers[layer].weights;
    wished += layers[layer].weights * (wish[layer] - least);
    level = (spare - wished) / weights;
    count++;
  }
  for (const layer of order.slice(0, count)) bits[layer] = Math.max(least, wish[layer] + level);
  return bits;
}

/** The sum of a_l 2^(-2 b_l). */
export function idealLoss(layers: readonly IdealLayer[], bits: ArrayLike<number>): number {
  return layers.reduce((sum, { sensitivity }, i) => sum + sensitivity * 2 ** (-2 * bits[i]), 0);
}
