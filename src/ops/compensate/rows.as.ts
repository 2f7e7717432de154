// out += x . residual, over the chosen rows of a residual: rows of codes, one per input channel, the output channels
// side by side. Rows are taken in pairs, whose codes and inputs are multiplied and summed as 16-bit integers: exact, so
// the order of the sums, threads and instruction sets do not matter. Halfs are summed as floats, row after row.

import { HALF_MASK, HALF_SCALE, half4, madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";
import * as op from "../../backends/wasm/opcodes";

/** Channels whose products are summed as integers, as in select.as.ts: 128 x 32767 x 255 x 2 stays below 2^31. */
const BLOCK: i32 = 128;

// @ts-ignore: decorator
@external("env", "fetchRows")
declare function fetchRows(file: i32, low: i32, high: i32, stride: i32, reads: usize, count: i32): i32;

/**
 * args: reads, file, position (low and high word), stride, threads. So many threads do some each of the readings that
 * places.as.ts asked for; what goes wrong is noted for whoever started the program.
 */
export function fetchResidual(args: usize, t: i32, n: i32): void {
  const reads = <usize>load<u32>(args);
  const all = load<i32>(reads);
  const readers = min(n, load<i32>(args, 20));
  if (t >= readers) return;
  const from = share(all, t, readers, 1);
  const count = share(all, t + 1, readers, 1) - from;
  if (count == 0) return;
  const first = reads + 4 + <usize>from * 12;
  const problem = fetchRows(load<i32>(args, 4), load<i32>(args, 8), load<i32>(args, 12), load<i32>(args, 16), first, count);
  if (problem) atomic.store<i32>(op.FETCH_PROBLEM, problem);
}

/**
 * args: x, columns, list, values, scales, sums, channels, base, unit, rows, bits, out, tokens, size, weight scales. The row
 * of the list's i-th channel begins at base + unit * rows[i].
 */
export function addResidual(args: usize, t: i32, n: i32): void {
  const columns = load<i32>(args, 4);
  const channels = load<i32>(args, 24);
  const base = <usize>load<u32>(args, 28);
  const unit = <usize>load<u32>(args, 32);
  const bits = load<i32>(args, 40);
  const tokens = load<i32>(args, 48);
  const size = load<i32>(args, 52);
  const even = (channels + 1) & ~1;
  const blocks = (channels + BLOCK - 1) / BLOCK;
  const perVector = 128 / bits;
  const end = share(size, t + 1, n, perVector);
  for (let token = 0; token < tokens; token++) {
    const list = <usize>load<u32>(args, 8) + ((<usize>token * even) << 2);
    const values = <usize>load<u32>(args, 12) + ((<usize>token * even) << 1);
    const scale = load<f32>(<usize>load<u32>(args, 16) + (<usize>token << 2)) * 0.5;
    const sums = <usize>load<u32>(args, 20) + ((<usize>token * blocks) << 2);
    const x = <usize>load<u32>(args) + ((<usize>token * columns) << 2);
    const out = <usize>load<u32>(args, 44) + ((<usize>token * size) << 2);
    const rows = <usize>load<u32>(args, 36) + ((<usize>token * even) << 2);
    for (let first = share(size, t, n, perVector); first < end; first += perVector) {
      const from = base + (<usize>(first / perVector) << 4);
      const to = out + (<usize>first << 2);
      if (bits == 16) {
        halfRows(x, list, channels, from, unit, rows, to, size - first);
        continue;
      }
      const weightScales = <usize>load<u32>(args, 56) + (<usize>first << 2);
      for (let shift = 0; shift < 8; shift += 2 * bits) {
        const column = (shift / bits) << 4;
        if (first + column >= size) break;
        for (let block = 0; block < blocks; block++) {
          const at = block * BLOCK;
          codeRows(
            rows + (<usize>at << 2), values + (<usize>at << 1), min(BLOCK, even - at), from, unit, bits, shift,
            load<i32>(sums + (<usize>block << 2)) * ((1 << bits) - 1), scale,
            weightScales + (<usize>column << 2), to + (<usize>column << 2), size - first - column,
          );
        }
      }
    }
  }
}

/**
 * Adds up to 32 outputs (16 with 8 bits) of at most 128 rows: the codes at `shift` of a byte, then those above them.
 * A code c stands for (2 c - offset / sum of x) / 2, so the products are 2 sum(c x) - offset, halved with `scale`.
 */
function codeRows(
  rows: usize, values: usize, count: i32, base: usize, unit: usize, bits: i32, shift: i32,
  offset: i32, scale: f32, weightScales: usize, out: usize, room: i32,
): void {
  const mask = i8x16.splat(<i8>((<i32>1 << bits) - 1));
  const second = bits < 8 ? shift + bits : shift;
  let a0 = i32x4.splat(0);
  let a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  for (let i = 0; i < count; i += 2) {
    const p = base + <usize>load<u32>(rows + (<usize>i << 2)) * unit;
    const q = base + <usize>load<u32>(rows + (<usize>i << 2), 4) * unit;
    const x = v128.load32_splat(values + (<usize>i << 1));
    const v = v128.load(p);
    const w = v128.load(q);
    let low = v128.and(i8x16.shr_u(v, shift), mask);
    let high = v128.and(i8x16.shr_u(w, shift), mask);
    let pairs = v128.shuffle<u8>(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    a0 = i32x4.add(a0, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(pairs), x));
    a1 = i32x4.add(a1, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(pairs), x));
    pairs = v128.shuffle<u8>(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    a2 = i32x4.add(a2, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(pairs), x));
    a3 = i32x4.add(a3, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(pairs), x));
    if (second == shift) continue;
    low = v128.and(i8x16.shr_u(v, second), mask);
    high = v128.and(i8x16.shr_u(w, second), mask);
    pairs = v128.shuffle<u8>(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    b0 = i32x4.add(b0, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(pairs), x));
    b1 = i32x4.add(b1, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(pairs), x));
    pairs = v128.shuffle<u8>(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    b2 = i32x4.add(b2, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(pairs), x));
    b3 = i32x4.add(b3, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(pairs), x));
  }
  addCodes(a0, offset, scale, weightScales, out, room);
  addCodes(a1, offset, scale, weightScales + 16, out + 16, room - 4);
  addCodes(a2, offset, scale, weightScales + 32, out + 32, room - 8);
  addCodes(a3, offset, scale, weightScales + 48, out + 48, room - 12);
  if (second == shift) return;
  addCodes(b0, offset, scale, weightScales + 64, out + 64, room - 16);
  addCodes(b1, offset, scale, weightScales + 80, out + 80, room - 20);
  addCodes(b2, offset, scale, weightScales + 96, out + 96, room - 24);
  addCodes(b3, offset, scale, weightScales + 112, out + 112, room - 28);
}

/** Four outputs; scales are padded, outputs end after `room` of them. */
// @ts-ignore: decorator
@inline
function addCodes(sum: v128, offset: i32, scale: f32, weightScales: usize, out: usize, room: i32): void {
  if (room <= 0) return;
  const exact = i32x4.sub(i32x4.add(sum, sum), i32x4.splat(offset));
  const scales = f32x4.mul(v128.load(weightScales), f32x4.splat(scale));
  addFour(f32x4.mul(f32x4.convert_i32x4_s(exact), scales), out, room);
}

function addFour(values: v128, out: usize, room: i32): void {
  if (room >= 4) {
    v128.store(out, f32x4.add(v128.load(out), values));
    return;
  }
  store<f32>(out, load<f32>(out) + f32x4.extract_lane(values, 0));
  if (room > 1) store<f32>(out, load<f32>(out, 4) + f32x4.extract_lane(values, 1), 4);
  if (room > 2) store<f32>(out, load<f32>(out, 8) + f32x4.extract_lane(values, 2), 8);
}

/** Eight outputs of rows of halfs. */
function halfRows(
  x: usize, list: usize, channels: i32, base: usize, unit: usize, rows: usize, out: usize, room: i32,
): void {
  const mask = v128.load(HALF_MASK);
  const half = v128.load(HALF_SCALE);
  let a = f32x4.splat(0);
  let b = a;
  for (let i = 0; i < channels; i++) {
    const at = <usize>i << 2;
    const row = base + <usize>load<u32>(rows + at) * unit;
    const value = v128.load32_splat(x + (<usize>load<u32>(list + at) << 2));
    a = madd(half4(row, mask, half), value, a);
    b = madd(half4(row + 8, mask, half), value, b);
  }
  addFour(a, out, room);
  if (room > 4) addFour(b, out + 16, room - 4);
}
