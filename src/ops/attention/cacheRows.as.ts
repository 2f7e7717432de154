// How a head of one position lies in the cache: floats, halfs, or bytes with one scale behind them.

import { HALF_MASK, HALF_SCALE, half4, maxLanes } from "../../backends/wasm/math.as";
import { widen } from "../linear/float.as";
import { narrowToHalf } from "../linear/pack.as";
import { toIntegers } from "../linear/quantize.as";

/** As in keyValueTypes of keyValue.ts. */
export const F32: i32 = 0;
export const F16: i32 = 1;
export const INT8: i32 = 2;

/** 1.5 * 2^23, see quantize.as.ts. */
const ROUNDING = memory.data<f32>([12582912.0, 12582912.0, 12582912.0, 12582912.0], 16);
const LARGEST: f32 = 127;

/** Bytes of a head of one position. */
export function headBytesOf(type: i32, headSize: i32): usize {
  if (type == F32) return <usize>headSize << 2;
  if (type == F16) return <usize>headSize << 1;
  return <usize>((headSize + 3) & ~3) + 4;
}

export function storeHead(type: i32, from: usize, to: usize, headSize: i32): void {
  if (type == F32) memory.copy(to, from, <usize>headSize << 2);
  else if (type == F16) narrowToHalf(from, to, headSize);
  else storeBytes(from, to, headSize);
}

function storeBytes(from: usize, to: usize, headSize: i32): void {
  let peaks = f32x4.splat(0);
  const step = headSize & 3 ? 1 : 4;
  for (let i = 0; i < headSize; i += step) {
    const at = from + (<usize>i << 2);
    peaks = f32x4.max(peaks, f32x4.abs(step == 4 ? v128.load(at) : v128.load32_splat(at)));
  }
  const peak = maxLanes(peaks);
  // Below, largest / peak could be infinite. A peak that is no number makes the scale none.
  const factor = f32x4.splat(peak > 1e-36 ? LARGEST / peak : 0);
  const rounding = v128.load(ROUNDING);
  for (let i = 0; i < headSize; i += step) {
    const at = from + (<usize>i << 2);
    const integers = toIntegers(step == 4 ? v128.load(at) : v128.load32_splat(at), factor, rounding);
    const words = i16x8.narrow_i32x4_s(integers, integers);
    const bytes = i8x16.narrow_i16x8_s(words, words);
    if (step == 4) v128.store32_lane(to + i, bytes, 0);
    else v128.store8_lane(to + i, bytes, 0);
  }
  store<f32>(to + ((headSize + 3) & ~3), peak / LARGEST);
}

/** A head of `count` positions to rows of floats; bytes as they are, their scales apart. */
export function loadHeads(type: i32, from: usize, count: i32, headSize: i32, to: usize, scales: usize): void {
  const stride = headBytesOf(type, headSize);
  const size = <usize>headSize << 2;
  for (let i = 0; i < count; i++) {
    if (type == F32) copy(from, to, headSize);
    else if (type == F16) widenHead(from, to, headSize);
    else {
      bytesToFloats(from, to, headSize);
      store<f32>(scales + (<usize>i << 2), load<f32>(from + ((headSize + 3) & ~3)));
    }
    from += stride;
    to += size;
  }
}

/** Heads are too short for memory.copy, a call out of WebAssembly. */
// @ts-ignore: decorator
@inline
function copy(from: usize, to: usize, count: i32): void {
  let i = 0;
  for (; i + 4 <= count; i += 4) v128.store(to + (<usize>i << 2), v128.load(from + (<usize>i << 2)));
  for (; i < count; i++) store<f32>(to + (<usize>i << 2), load<f32>(from + (<usize>i << 2)));
}

// @ts-ignore: decorator
@inline
function widenHead(from: usize, to: usize, count: i32): void {
  if (count & 3) {
    widen(from, to, count);
    return;
  }
  const mask = v128.load(HALF_MASK);
  const scale = v128.load(HALF_SCALE);
  for (const stop = to + (<usize>count << 2); to < stop; to += 16, from += 8) v128.store(to, half4(from, mask, scale));
}

// @ts-ignore: decorator
@inline
function bytesToFloats(from: usize, to: usize, count: i32): void {
  let i = 0;
  for (; i + 8 <= count; i += 8) {
    const words = v128.load8x8_s(from + i);
    const at = to + (<usize>i << 2);
    v128.store(at, f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(words)));
    v128.store(at, f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(words)), 16);
  }
  for (; i < count; i++) store<f32>(to + (<usize>i << 2), <f32>load<i8>(from + i));
}
