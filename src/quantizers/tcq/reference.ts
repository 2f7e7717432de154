/**
 * The tail-biting Viterbi search in plain TypeScript: the oracle of `viterbi.as.ts`.
 *
 * @module
 */
import { STATE_BITS, TILE_STEPS } from "./trellis.ts";

/** States of a sequence and its squared error. */
export interface Path {
  readonly states: Uint16Array;
  readonly error: number;
}

/**
 * Encodes 128 steps of two values against `codes` (two values per state), in two passes: a free one over `window`
 * steps either side of the seam finds the bits that both ends share, the second ties both ends to them.
 */
export function referenceEncode(
  values: ArrayLike<number>,
  codes: ArrayLike<number>,
  shift: number,
  window: number,
): Path {
  const keyBits = STATE_BITS - shift;
  const around = Array.from({ length: 2 * window }, (_, i) => (TILE_STEPS - window + i) % TILE_STEPS);
  const free = search(values, codes, shift, around);
  const seam = free.states[window] >>> shift;
  const path = search(values, codes, shift, [...Array(TILE_STEPS).keys()], seam);
  if ((path.states[TILE_STEPS - 1] & ((1 << keyBits) - 1)) !== seam)
    throw new Error("the trellis does not close");
  return path;
}

/** The best path over the given steps; with `tied`, from this key to this key. */
function search(
  values: ArrayLike<number>,
  codes: ArrayLike<number>,
  shift: number,
  steps: readonly number[],
  tied?: number,
): Path {
  const keys = 1 << (STATE_BITS - shift);
  let costs = new Float64Array(keys);
  if (tied !== undefined) costs.fill(Number.POSITIVE_INFINITY)[tied] = 0;
  const from: Uint16Array[] = [];
  for (const step of steps) {
    const next = new Float64Array(keys).fill(Number.POSITIVE_INFINITY);
    const best = new Uint16Array(keys);
    for (let state = 0; state < 1 << STATE_BITS; state++) {
      const a = values[2 * step] - codes[2 * state];
      const b = values[2 * step + 1] - codes[2 * state + 1];
      const cost = costs[state >>> shift] + a * a + b * b;
      const key = state & (keys - 1);
      if (cost < next[key]) {
        next[key] = cost;
        best[key] = state;
      }
    }
    costs = next;
    from.push(best);
  }
  let key = tied ?? costs.indexOf(costs.reduce((least, cost) => Math.min(least, cost)));
  const error = costs[key];
  const states = new Uint16Array(steps.length);
  for (let i = steps.length - 1; i >= 0; i--) {
    states[i] = from[i][key];
    key = states[i] >>> shift;
  }
  return { states, error };
}
