import { maxLanes, sumLanes } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/** Activations that share a scale. */
export const GROUP = 128;

/**
 * 1.5 * 2^23, four times, and its bits: adding it rounds a small float to an integer, ties to even, in the low
 * bits of the sum. Far fewer instructions than a saturating conversion, and nothing can trap. In memory, because
 * V8 builds a vector constant anew at each use in a loop.
 */
const ROUNDING = memory.data<f32>([12582912.0, 12582912.0, 12582912.0, 12582912.0], 16);

/** What the high byte of 16 bits counts. */
const HIGH: f32 = 256;

/**
 * args: x, rows, size, padded, q, scales, sums, largest. q: int8 [rows, padded], from -largest to largest; scales and
 * sums of a group: [rows, groups]. Where largest exceeds a byte, every row of x becomes two, the high bytes (whose scale
 * is 256 times as large), then the low ones.
 */
export function quantize(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const rows = load<i32>(args, 4);
  const size = load<i32>(args, 8);
  const padded = load<i32>(args, 12);
  const q = <usize>load<u32>(args, 16);
  const scales = <usize>load<u32>(args, 20);
  const sums = <usize>load<u32>(args, 24);
  const largest = <f32>load<i32>(args, 28);
  const groups = (size + GROUP - 1) / GROUP;
  const wide = largest > 127;
  const end = share(rows, t + 1, n, 1);
  for (let row = share(rows, t, n, 1); row < end; row++) {
    if (wide) {
      quantizeWide(x + (<usize>(row * size) << 2), row * 2, size, padded, largest, q, scales, sums);
      continue;
    }
    const target = q + <usize>row * padded;
    for (let g = 0; g < groups; g++) {
      const first = g * GROUP;
      const at = <usize>(row * groups + g) << 2;
      quantizeGroup(
        x + (<usize>(row * size + first) << 2), min(GROUP, size - first), largest, target + first, scales + at,
        sums + at,
      );
    }
    memory.fill(target + size, 0, padded - size);
  }
}

/** A row to two rows of bytes. */
function quantizeWide(x: usize, row: i32, size: i32, padded: i32, largest: f32, q: usize, scales: usize, sums: usize): void {
  const groups = (size + GROUP - 1) / GROUP;
  const high = q + <usize>row * padded;
  const low = high + padded;
  const rounding = v128.load(ROUNDING);
  for (let g = 0; g < groups; g++) {
    const first = g * GROUP;
    const count = min(GROUP, size - first);
    const from = x + (<usize>first << 2);
    const peak = peakOf(from, count);
    const factor = f32x4.splat(peak > 1e-36 ? largest / peak : 0);
    let highs = 0;
    let lows = 0;
    for (let i = 0; i < count; i += i + 4 <= count ? 4 : 1) {
      const at = from + (<usize>i << 2);
      const four = i + 4 <= count;
      const integers = toIntegers(four ? v128.load(at) : v128.load32_splat(at), factor, rounding);
      const upper = i32x4.shr_s(i32x4.add(integers, i32x4.splat(128)), 8);
      const lower = i32x4.sub(integers, i32x4.shl(upper, 8));
      const words = i16x8.narrow_i32x4_s(upper, lower);
      const bytes = i8x16.narrow_i16x8_s(words, words);
      const place = <usize>(first + i);
      if (four) {
        v128.store32_lane(high + place, bytes, 0);
        v128.store32_lane(low + place, bytes, 1);
        highs += sumIntegers(upper);
        lows += sumIntegers(lower);
      } else {
        v128.store8_lane(high + place, bytes, 0);
        v128.store8_lane(low + place, bytes, 4);
        highs += i32x4.extract_lane(upper, 0);
        lows += i32x4.extract_lane(lower, 0);
      }
    }
    const at = <usize>(row * groups + g) << 2;
    const next = at + (<usize>groups << 2);
    const scale = peak / largest;
    store<f32>(scales + at, scale * HIGH);
    store<f32>(scales + next, scale);
    store<i32>(sums + at, highs);
    store<i32>(sums + next, lows);
  }
  memory.fill(high + size, 0, padded - size);
  memory.fill(low + size, 0, padded - size);
}

// @ts-ignore: decorator
@inline
function sumIntegers(v: v128): i32 {
  return (
    i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + (i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3))
  );
}

/** max |x|; NaN where a value is NaN or infinite, which maxima and integers would hide. */
// @ts-ignore: decorator
@inline
function peakOf(x: usize, count: i32): f32 {
  let peaks = f32x4.splat(0);
  // x - x: zero, or NaN.
  let poison = peaks;
  for (let i = 0; i < count; i += i + 4 <= count ? 4 : 1) {
    const at = x + (<usize>i << 2);
    const v = i + 4 <= count ? v128.load(at) : v128.load32_splat(at);
    peaks = f32x4.pmax(peaks, f32x4.abs(v));
    poison = f32x4.add(poison, f32x4.sub(v, v));
  }
  return maxLanes(peaks) + sumLanes(poison);
}

/** Scale max|x| / largest, nearest integers. */
function quantizeGroup(x: usize, count: i32, largest: f32, q: usize, scaleOut: usize, sumOut: usize): void {
  const peak = peakOf(x, count);
  // Below, largest / peak could be infinite.
  const factor = f32x4.splat(peak > 1e-36 ? largest / peak : 0);
  const rounding = v128.load(ROUNDING);
  let totals = i32x4.splat(0);
  let i = 0;
  for (; i + 8 <= count; i += 8) {
    const at = x + (<usize>i << 2);
    const low = toIntegers(v128.load(at), factor, rounding);
    const high = toIntegers(v128.load(at, 16), factor, rounding);
    totals = i32x4.add(totals, i32x4.add(low, high));
    const words = i16x8.narrow_i32x4_s(low, high);
    v128.store64_lane(q + i, i8x16.narrow_i16x8_s(words, words), 0);
  }
  let sum = sumIntegers(totals);
  for (; i < count; i++) {
    const value = i32x4.extract_lane(toIntegers(v128.load32_splat(x + (<usize>i << 2)), factor, rounding), 0);
    store<i8>(q + i, value);
    sum += value;
  }
  store<f32>(scaleOut, peak / largest);
  store<i32>(sumOut, sum);
}

// @ts-ignore: decorator
@inline
export function toIntegers(x: v128, factor: v128, rounding: v128): v128 {
  return i32x4.sub(f32x4.add(f32x4.mul(x, factor), rounding), rounding);
}
