// The input channels of each token that are compensated. A channel's salience is an integer key below 2^31; the largest
// keys are found by bisection on their bits, equal ones in the order of the channels: whatever the threads, the same.

import { share } from "../../backends/wasm/parallel.as";

const MAGNITUDE: i32 = 0;
const BUCKETS: i32 = 1;
const ENERGY: i32 = 2;

/** Channels that bucket selection looks at together (DecDEC, section 4.3). */
const CHUNK: i32 = 1024;
/** Channels whose products are summed as integers; wasm.ts counts on it. */
const BLOCK: i32 = 128;

/**
 * args: x, tokens, columns, channels, mode, first, second, keys, bytes of keys per thread, list, values, scales, sums.
 *
 * Per token: list holds the channels as u32, their number rounded up to even by repeating the last; values the inputs
 * as i16 of 1/32767 of the largest, 0 for the repeated one; scales what a unit of values stands for; sums the sum of
 * values over each block of 128. Dealt in reverse: a single token is chosen for by the first thread
 * while the last one prepares its input.
 */
export function selectChannels(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const tokens = load<i32>(args, 4);
  const columns = load<i32>(args, 8);
  const channels = load<i32>(args, 12);
  const keys = <usize>load<u32>(args, 28) + <usize>t * load<u32>(args, 32);
  const list = <usize>load<u32>(args, 36);
  const values = <usize>load<u32>(args, 40);
  const scales = <usize>load<u32>(args, 44);
  const sums = <usize>load<u32>(args, 48);
  const even = (channels + 1) & ~1;
  const blocks = (channels + BLOCK - 1) / BLOCK;
  const last = n - 1 - t;
  const end = share(tokens, last + 1, n, 1);
  for (let token = share(tokens, last, n, 1); token < end; token++) {
    const row = x + ((<usize>token * columns) << 2);
    const to = list + ((<usize>token * even) << 2);
    makeKeys(args, row, keys, columns);
    if (load<i32>(args, 16) == BUCKETS) {
      let taken = 0;
      for (let first = 0; first < columns; first += CHUNK) {
        const count = min(CHUNK, columns - first);
        // Every chunk gives its share; rounding up early ones must not take from the total.
        const reached = <i32>((<i64>channels * (first + count)) / columns);
        top(keys + (<usize>first << 2), count, reached - taken, 4, first, to + (<usize>taken << 2));
        taken = reached;
      }
    } else {
      top(keys, columns, channels, 30, 0, to);
    }
    for (let i = channels; i < even; i++) store<u32>(to + (<usize>i << 2), load<u32>(to + (<usize>(i - 1) << 2)));
    const sum = sums + ((<usize>token * blocks) << 2);
    store<f32>(scales + (<usize>token << 2), narrow(row, to, values + ((<usize>token * even) << 1), channels, even, sum));
  }
}

/** Keys of a token's channels, zeros up to a multiple of four. */
function makeKeys(args: usize, row: usize, keys: usize, columns: i32): void {
  const mode = load<i32>(args, 16);
  const first = load<f32>(args, 20);
  const second = load<f32>(args, 24);
  const fine: f32 = second > 0 ? <f32>16 / second : 0;
  const coarse: f32 = first > second ? <f32>16 / (first - second) : 0;
  const seed = load<u32>(args, 20);
  const energies = <usize>load<u32>(args, 20);
  for (let i = 0; i < columns; i++) {
    const at = <usize>i << 2;
    const word = load<u32>(row + at);
    let key = word & 0x7fffffff;
    if (mode == BUCKETS) {
      // Sixteen buckets up to the usual k-th largest magnitude, sixteen from there to the largest.
      const magnitude = reinterpret<f32>(key);
      const bucket = magnitude >= second ? <f32>16 + (magnitude - second) * coarse : magnitude * fine;
      key = truncate(min<f32>(bucket, magnitude >= second ? 31 : 15));
    } else if (mode == ENERGY) {
      key = load<u32>(energies + at);
    } else if (mode != MAGNITUDE) {
      key = mix(mix(seed + <u32>i) + word) >>> 1;
    }
    store<u32>(keys + at, key);
  }
  for (let i = columns; i & 3; i++) store<u32>(keys + (<usize>i << 2), 0);
}

/** Towards zero, whatever the number. */
// @ts-ignore: decorator
@inline
function truncate(value: f32): i32 {
  return i32x4.extract_lane(i32x4.trunc_sat_f32x4_s(f32x4.splat(value)), 0);
}

/** The finalizer of MurmurHash3. */
function mix(word: u32): u32 {
  let h = word;
  h = (h ^ (h >>> 16)) * 0x85ebca6b;
  h = (h ^ (h >>> 13)) * 0xc2b2ae35;
  return h ^ (h >>> 16);
}

/** Writes the places (from `first` on) of the `wanted` largest of `count` keys below 2^(bit + 1), ascending. */
export function top(keys: usize, count: i32, wanted: i32, bit: i32, first: i32, to: usize): void {
  let threshold: i32 = 0;
  let above: i32 = -1;
  for (; bit >= 0; bit--) {
    const candidate = threshold | (1 << bit);
    const reached = atLeast(keys, count, candidate);
    if (reached < wanted) continue;
    threshold = candidate;
    if (reached == wanted) {
      above = wanted;
      break;
    }
  }
  // The threshold is the least key taken; of those equal to it, as many as are missing.
  let equal = above < 0 ? wanted - atLeast(keys, count, threshold + 1) : wanted;
  const level = i32x4.splat(threshold);
  for (let i = 0; i < count; i += 4) {
    let mask = i32x4.bitmask(i32x4.ge_s(v128.load(keys + (<usize>i << 2)), level));
    while (mask) {
      const place = i + ctz(mask);
      mask &= mask - 1;
      if (place >= count) break;
      if (load<i32>(keys + (<usize>place << 2)) == threshold) {
        if (equal <= 0) continue;
        equal--;
      }
      store<u32>(to, first + place);
      to += 4;
    }
  }
}

function atLeast(keys: usize, count: i32, level: i32): i32 {
  const limit = i32x4.splat(level);
  let a = i32x4.splat(0);
  let b = a;
  let i = 0;
  for (; i + 8 <= count; i += 8) {
    const at = keys + (<usize>i << 2);
    a = i32x4.sub(a, i32x4.ge_s(v128.load(at), limit));
    b = i32x4.sub(b, i32x4.ge_s(v128.load(at, 16), limit));
  }
  let total = 0;
  for (; i < count; i++) total += i32(load<i32>(keys + (<usize>i << 2)) >= level);
  a = i32x4.add(a, b);
  return total + i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
}

/** The chosen inputs as i16; returns what a unit stands for. */
function narrow(row: usize, list: usize, values: usize, channels: i32, even: i32, sums: usize): f32 {
  let peak: f32 = 0;
  for (let i = 0; i < channels; i++) {
    peak = max(peak, abs(load<f32>(row + (<usize>load<u32>(list + (<usize>i << 2)) << 2))));
  }
  const inverse: f32 = peak > 0 ? 32767 / peak : 0;
  let sum = 0;
  for (let i = 0; i < even; i++) {
    const x = load<f32>(row + (<usize>load<u32>(list + (<usize>i << 2)) << 2));
    const value = i < channels ? truncate(nearest(x * inverse)) : 0;
    store<i16>(values + (<usize>i << 1), <i16>value);
    sum += value;
    if ((i & (BLOCK - 1)) == BLOCK - 1 || i == even - 1) {
      store<i32>(sums + (<usize>(i / BLOCK) << 2), sum);
      sum = 0;
    }
  }
  return peak / 32767;
}
