/**
 * By what channels are scaled.
 *
 * @module
 */
import type { Energies } from "./energies.ts";
import type { ScalableInput } from "./inputs.ts";

/** Inputs and weights count as at least this share of their means. */
const FLOOR = 1e-3;

/**
 * s = (x / w)^exponent for every channel of an input's source, of geometric mean 1, where x and w are the root mean
 * squares of the input's channels and of the weights that multiply them. Channels of one source are pooled.
 *
 * Rounding rotated weights errs by white noise in proportion to a row's norm: on average over rows the output is off by
 * sum_j w_j^2 s_j^2 times sum_j x_j^2 / s_j^2, which is least at s_j^2 = x_j / w_j, an exponent of 1/2 (as in QuIP,
 * arXiv:2307.13304, section 4.2, with x from a Hessian's diagonal).
 */
export function channelScales(
  input: Pick<ScalableInput, "sourceSize" | "sourceChannel">,
  { inputs, weights }: Energies,
  exponent: number,
): Float32Array {
  const x = magnitudes(pooled(input, inputs));
  const w = magnitudes(pooled(input, weights));
  // An input or weights of zeros, or of no numbers, tell nothing.
  if (!x || !w) return new Float32Array(input.sourceSize).fill(1);
  const logs = x.map((value, channel) => exponent * Math.log(value / w[channel]));
  const mean = meanOf(logs);
  return Float32Array.from(logs, (log) => Math.exp(log - mean));
}

/** Means over the channels of each channel of the source. */
function pooled(
  { sourceSize, sourceChannel }: Pick<ScalableInput, "sourceSize" | "sourceChannel">,
  squares: Float64Array,
): Float64Array {
  const sums = new Float64Array(sourceSize);
  for (let channel = 0; channel < squares.length; channel++) sums[sourceChannel(channel)] += squares[channel];
  const share = squares.length / sourceSize;
  return sums.map((sum) => sum / share);
}

/** Roots, the smallest raised. */
function magnitudes(squares: Float64Array): Float64Array | undefined {
  const roots = squares.map(Math.sqrt);
  const mean = meanOf(roots);
  return mean > 0 && mean < Number.POSITIVE_INFINITY
    ? roots.map((root) => Math.max(root, FLOOR * mean))
    : undefined;
}

function meanOf(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
