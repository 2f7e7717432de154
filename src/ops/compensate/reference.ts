import type { ChannelSelection } from "../../backends/operation.ts";
import { mixWord } from "../../quantizers/random.ts";

/** Channels that bucket selection looks at together (DecDEC, section 4.3). */
const CHUNK = 1024;
/** Buckets on either side of the usual k-th largest magnitude. */
const HALF = 16;

/** {@link ChannelSelection} with its data at hand. */
export type SelectionRule =
  | Exclude<ChannelSelection, { by: "energy" }>
  | { readonly by: "energy"; readonly energies: Float32Array };

/**
 * The `count` channels of an input x that are compensated, ascending. Of equally salient ones the first are taken.
 * Buckets choose in each chunk of 1024 channels, and in what is left over, in proportion to its length.
 */
export function selectChannels(x: Float32Array, count: number, rule: SelectionRule): Uint32Array {
  const keys = salience(x, rule);
  if (rule.by !== "buckets") return top(keys, 0, x.length, count);
  const chosen: number[] = [];
  for (let first = 0; first < x.length; first += CHUNK) {
    const end = Math.min(first + CHUNK, x.length);
    const wanted = Math.floor((count * end) / x.length) - chosen.length;
    chosen.push(...top(keys, first, end, wanted));
  }
  return Uint32Array.from(chosen);
}

/** Larger is more salient. */
function salience(x: Float32Array, rule: SelectionRule): Float64Array {
  const words = new Uint32Array(x.buffer, x.byteOffset, x.length);
  return Float64Array.from(x, (value, i) => {
    const magnitude = Math.abs(value);
    switch (rule.by) {
      case "magnitude":
        return magnitude;
      case "energy":
        return rule.energies[i];
      case "random":
        return mixWord(mixWord(rule.seed + i) + words[i]) >>> 1;
      case "buckets":
        return bucketOf(magnitude, rule.largest, rule.usual);
    }
  });
}

/** Sixteen equal buckets up to the usual k-th largest magnitude, sixteen from there to the largest. */
function bucketOf(magnitude: number, largest: number, usual: number): number {
  const f = Math.fround;
  if (magnitude >= f(usual)) {
    const perUnit = largest > usual ? f(HALF / f(f(largest) - f(usual))) : 0;
    return Math.floor(Math.min(2 * HALF - 1, f(HALF + f(f(magnitude - f(usual)) * perUnit))));
  }
  return Math.floor(Math.min(HALF - 1, f(magnitude * f(HALF / f(usual)))));
}

function top(keys: Float64Array, from: number, to: number, count: number): Uint32Array {
  const order = Array.from({ length: to - from }, (_, i) => from + i);
  order.sort((a, b) => keys[b] - keys[a] || a - b);
  return Uint32Array.from(order.slice(0, count)).sort();
}

/** y [rows] += residual [rows, columns] . x over the chosen channels. */
export function compensate(
  x: Float32Array,
  channels: Uint32Array,
  residual: Float32Array,
  y: Float32Array,
): void {
  for (let row = 0; row < y.length; row++) {
    let sum = 0;
    for (const channel of channels) sum += residual[row * x.length + channel] * x[channel];
    y[row] += sum;
  }
}
