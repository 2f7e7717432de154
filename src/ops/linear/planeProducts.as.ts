// Products of weights in bit planes (packBitPlanes): a code is a sum of its bits, each times an integer, so the product
// is a sum over planes. Table looks up what four activations add to, for each of the 16 patterns of a nibble of a
// plane; Bitwise counts the bits that a plane of weights and a plane of activations have in common.

import { share } from "../../backends/wasm/parallel.as";
import { BITS, offsetOf, tileBytes, unitOf, WEIGHTS } from "./plan.as";
import { GROUP } from "./quantize.as";
import { swizzle } from "./simd.as";
import { NIBBLE_MASK } from "./tiles.as";
import { addFour, storeTile } from "./tileProducts.as";

/** Columns of a tile. */
const SIDE = 16;

/** Forms of the instruction. Table splits the sums of 8-bit activations into two bytes; those of 4 bits fit one. */
export const TABLE: i32 = 0;
export const NARROW_TABLE: i32 = 1;
export const BITWISE: i32 = 2;

/** Bits of the low byte of a sum: eight of them add up to less than 256, and eight high ones to less than 128. */
const LOW_BITS = 5;

/** Of eight sums of three activations: which have the first, the second, the third. */
const MEMBERS = memory.data<u16>(
  // prettier-ignore
  [
  0, 65535, 0, 65535, 0, 65535, 0, 65535,
  0, 0, 65535, 65535, 0, 0, 65535, 65535,
  0, 0, 0, 0, 65535, 65535, 65535, 65535,
  31, 31, 31, 31, 31, 31, 31, 31,
  ],
  16,
);

/**
 * args: q, scales, sums, tiles, rowScales, plan, out, tokens, rows, form, padded, activation bits, scratch, scratch
 * bytes per thread
 */
export function linearPlanes(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const scales = <usize>load<u32>(args, 4);
  const sums = <usize>load<u32>(args, 8);
  const weights = <usize>load<u32>(args, 12);
  const rowScales = <usize>load<u32>(args, 16);
  const plan = <usize>load<u32>(args, 20);
  const out = <usize>load<u32>(args, 24);
  const tokens = load<i32>(args, 28);
  const rows = load<i32>(args, 32);
  const form = load<i32>(args, 36);
  const padded = load<i32>(args, 40);
  const activationBits = load<i32>(args, 44);
  const f = <usize>load<u32>(args, 48) + <usize>t * load<u32>(args, 52);
  const prepared = f + 128;
  const groups = (padded + GROUP - 1) / GROUP;
  const bandBytes = tileBytes(plan) * (padded / SIDE);
  const end = share(rows, t + 1, n, SIDE);
  for (let token = 0; token < tokens; token++) {
    const a = q + <usize>token * padded;
    if (form == BITWISE) splitPlanes(a, prepared, padded, activationBits);
    else addPatterns(a, prepared, padded, form == NARROW_TABLE);
    for (let row = share(rows, t, n, SIDE); row < end; row += SIDE) {
      let w = weights + <usize>(row / SIDE) * bandBytes;
      memory.fill(f, 0, 64);
      for (let g = 0; g < groups; g++) {
        const first = g * GROUP;
        const tiles = min(GROUP, padded - first) / SIDE;
        const at = <usize>(token * groups + g) << 2;
        const start = <f32>load<i32>(sums + at) * -offsetOf(plan);
        addPlanes(plan, w, prepared, first, tiles, form, activationBits, start, load<f32>(scales + at) * unitOf(plan), f);
        w += tileBytes(plan) * tiles;
      }
      storeTile(f, out + (<usize>(token * rows + row) << 2), 1, 0, rowScales + (<usize>row << 2), end - row);
    }
  }
}

/** One group: f [16] += scale * (start + sum over planes of the plane's weight times its product). */
function addPlanes(
  plan: usize, w: usize, prepared: usize, first: i32, tiles: i32, form: i32, activationBits: i32, start: f32,
  scale: f32, f: usize,
): void {
  const bits = load<i32>(plan, BITS) >> 1;
  const tile = tileBytes(plan);
  let y0 = i32x4.splat(0), y1 = y0, y2 = y0, y3 = y0;
  const sums = f + 64;
  for (let plane = 0; plane < bits; plane++) {
    const at = w + (<usize>plane << 5);
    if (form == BITWISE) countPlane(at, tile, prepared + <usize>(first >> 3) * activationBits, tiles, activationBits, sums);
    else if (form == NARROW_TABLE) lookUpPlane(at, tile, prepared + <usize>first * 4, tiles, sums);
    else lookUpWidePlane(at, tile, prepared + <usize>first * 8, tiles, sums);
    const weight = i16x8.splat(load<i16>(plan + WEIGHTS + (<usize>plane << 1)));
    const low = v128.load(sums);
    const high = v128.load(sums, 16);
    y0 = i32x4.add(y0, i32x4.extmul_low_i16x8_s(low, weight));
    y1 = i32x4.add(y1, i32x4.extmul_high_i16x8_s(low, weight));
    y2 = i32x4.add(y2, i32x4.extmul_low_i16x8_s(high, weight));
    y3 = i32x4.add(y3, i32x4.extmul_high_i16x8_s(high, weight));
  }
  addFour(f, y0, y1, y2, y3, start, scale);
}

/**
 * For four activations after another the sums of all their subsets: 16 bytes where they fit, else 16 low parts and 16
 * high ones.
 */
function addPatterns(a: usize, to: usize, count: i32, narrow: bool): void {
  const first = v128.load(MEMBERS);
  const second = v128.load(MEMBERS, 16);
  const third = v128.load(MEMBERS, 32);
  const lowBits = v128.load(MEMBERS, 48);
  for (const stop = a + count; a < stop; a += 4) {
    const three = i16x8.add(
      i16x8.add(v128.and(i16x8.splat(load<i8>(a)), first), v128.and(i16x8.splat(load<i8>(a, 1)), second)),
      v128.and(i16x8.splat(load<i8>(a, 2)), third),
    );
    const four = i16x8.add(three, i16x8.splat(load<i8>(a, 3)));
    if (narrow) {
      v128.store(to, i8x16.narrow_i16x8_s(three, four));
      to += 16;
    } else {
      v128.store(to, i8x16.narrow_i16x8_u(v128.and(three, lowBits), v128.and(four, lowBits)));
      v128.store(to, i8x16.narrow_i16x8_s(i16x8.shr_s(three, LOW_BITS), i16x8.shr_s(four, LOW_BITS)), 16);
      to += 32;
    }
  }
}

/** 16 sums of 16 bits over the tiles of a group. Bytes of a tile's four look-ups cannot overflow. */
function lookUpPlane(w: usize, tile: usize, table: usize, tiles: i32, to: usize): void {
  const mask = v128.load(NIBBLE_MASK);
  let s0 = i16x8.splat(0), s1 = s0;
  for (let i = 0; i < tiles; i++) {
    let codes = v128.load(w);
    let bytes = swizzle(v128.load(table), v128.and(codes, mask));
    bytes = i8x16.add(bytes, swizzle(v128.load(table, 16), v128.and(i16x8.shr_u(codes, 4), mask)));
    codes = v128.load(w, 16);
    bytes = i8x16.add(bytes, swizzle(v128.load(table, 32), v128.and(codes, mask)));
    bytes = i8x16.add(bytes, swizzle(v128.load(table, 48), v128.and(i16x8.shr_u(codes, 4), mask)));
    s0 = i16x8.add(s0, i16x8.extend_low_i8x16_s(bytes));
    s1 = i16x8.add(s1, i16x8.extend_high_i8x16_s(bytes));
    w += tile;
    table += 64;
  }
  v128.store(to, s0);
  v128.store(to, s1, 16);
}

/** As {@link lookUpPlane} with sums in two parts, two tiles' look-ups at a time. */
function lookUpWidePlane(w: usize, tile: usize, table: usize, tiles: i32, to: usize): void {
  const mask = v128.load(NIBBLE_MASK);
  let s0 = i16x8.splat(0), s1 = s0, h0 = s0, h1 = s0;
  let low = s0, high = s0;
  for (let i = 0; i < tiles; i++) {
    let codes = v128.load(w);
    let index = v128.and(codes, mask);
    low = i8x16.add(low, swizzle(v128.load(table), index));
    high = i8x16.add(high, swizzle(v128.load(table, 16), index));
    index = v128.and(i16x8.shr_u(codes, 4), mask);
    low = i8x16.add(low, swizzle(v128.load(table, 32), index));
    high = i8x16.add(high, swizzle(v128.load(table, 48), index));
    codes = v128.load(w, 16);
    index = v128.and(codes, mask);
    low = i8x16.add(low, swizzle(v128.load(table, 64), index));
    high = i8x16.add(high, swizzle(v128.load(table, 80), index));
    index = v128.and(i16x8.shr_u(codes, 4), mask);
    low = i8x16.add(low, swizzle(v128.load(table, 96), index));
    high = i8x16.add(high, swizzle(v128.load(table, 112), index));
    w += tile;
    table += 128;
    if (i & 1 || i + 1 == tiles) {
      s0 = i16x8.add(s0, i16x8.extend_low_i8x16_u(low));
      s1 = i16x8.add(s1, i16x8.extend_high_i8x16_u(low));
      h0 = i16x8.add(h0, i16x8.extend_low_i8x16_s(high));
      h1 = i16x8.add(h1, i16x8.extend_high_i8x16_s(high));
      low = i16x8.splat(0);
      high = low;
    }
  }
  v128.store(to, i16x8.add(s0, i16x8.shl(h0, LOW_BITS)));
  v128.store(to, i16x8.add(s1, i16x8.shl(h1, LOW_BITS)), 16);
}

/** For every eight activations a byte of each of their bits, lowest first. */
function splitPlanes(a: usize, to: usize, count: i32, bits: i32): void {
  for (let i = 0; i < count; i += SIDE) {
    const v = v128.load(a + i);
    for (let bit = 0; bit < bits; bit++) {
      const ones = i8x16.bitmask(i8x16.shl(v, 7 - bit));
      store<u8>(to + bit, ones);
      store<u8>(to + bits + bit, ones >> 8);
    }
    to += 2 * bits;
  }
}

/** As {@link lookUpPlane} from planes of activations, of which the highest counts negatively (two's complement). */
function countPlane(w: usize, tile: usize, planes: usize, tiles: i32, bits: i32, to: usize): void {
  let s0 = i16x8.splat(0), s1 = s0;
  for (let bit = 0; bit < bits; bit++) {
    let codes = w;
    let ones = planes + bit;
    // At most 8 of each of 16 bytes: a group's count fits a byte.
    let count = i8x16.splat(0);
    for (let i = 0; i < tiles; i++) {
      count = i8x16.add(count, i8x16.popcnt(v128.and(v128.load(codes), v128.load8_splat(ones))));
      count = i8x16.add(count, i8x16.popcnt(v128.and(v128.load(codes, 16), v128.load8_splat(ones + bits))));
      codes += tile;
      ones += 2 * bits;
    }
    const low = i16x8.shl(i16x8.extend_low_i8x16_u(count), bit);
    const high = i16x8.shl(i16x8.extend_high_i8x16_u(count), bit);
    const negative = bit + 1 == bits;
    s0 = negative ? i16x8.sub(s0, low) : i16x8.add(s0, low);
    s1 = negative ? i16x8.sub(s1, high) : i16x8.add(s1, high);
  }
  v128.store(to, s0);
  v128.store(to, s1, 16);
}

/** Tiles of bit planes to the bytes of decodeTiles. */
export function decodeBitPlanes(part: usize, tile: usize, to: usize): void {
  const bits = load<i32>(part, BITS) >> 1;
  const weights = part + WEIGHTS;
  const spread = v128.load(SPREAD_ROWS);
  const members = v128.load(SPREAD_ROWS, 16);
  for (let run = 0; run < 4; run++) {
    const from = tile + (<usize>(run >> 1) << 4);
    for (let row: usize = 0; row < 16; row += 4) {
      let sum = i8x16.splat(0);
      for (let plane = 0; plane < bits; plane++) {
        let codes = v128.load32_splat(from + (<usize>plane << 5) + row);
        if (run & 1) codes = i16x8.shr_u(codes, 4);
        const ones = i8x16.eq(v128.and(swizzle(codes, spread), members), members);
        sum = i8x16.add(sum, v128.and(ones, i8x16.splat(load<i8>(weights + (<usize>plane << 1)))));
      }
      v128.store(to, sum);
      to += 16;
    }
  }
}

/** Each of four bytes four times, and a bit for each of the four. */
const SPREAD_ROWS = memory.data<u8>(
  [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8],
  16,
);
