// The trellis whose values are sums of two shuffled bytes (tcq-s).

import { lastFields, storeQuads, windows, zipHigh, zipLow } from "./fields.as";
import { BITS, FACTOR, FIRST, FOLD, HIGH, LOW, NIBBLES, POWERS, REST, SPREAD } from "./plan.as";
import { swizzle } from "./simd.as";

/** The shifts are constants of their own code: V8 spends four instructions on a shift by a variable. */
export function decodeSwizzleSum(part: usize, tile: usize, tiles: i32, to: usize): void {
  const shifts = load<i32>(part, SPREAD) * 16 + load<i32>(part, FOLD);
  const k = load<i32>(part, BITS);
  if (k == 4 && shifts == 0x99) twoBitSums(part, tile, tiles, to, 9, 9);
  else if (k == 8 && shifts == 0x2a) fourBitSums(part, tile, tiles, to, 2, 10);
  else if (shifts == 0x99) swizzleSums(part, tile, tiles, to, 9, 9);
  else if (shifts == 0x88) swizzleSums(part, tile, tiles, to, 8, 8);
  else if (shifts == 0xc9) swizzleSums(part, tile, tiles, to, 12, 9);
  else if (shifts == 0x5a) swizzleSums(part, tile, tiles, to, 5, 10);
  else if (shifts == 0x2a) swizzleSums(part, tile, tiles, to, 2, 10);
  else if (shifts == 0x1b) swizzleSums(part, tile, tiles, to, 1, 11);
  else if (shifts == 0x17) swizzleSums(part, tile, tiles, to, 1, 7);
  else swizzleSums(part, tile, tiles, to, load<i32>(part, SPREAD), load<i32>(part, FOLD));
}

// @ts-ignore: decorator
@inline
function sums(x: v128, spread: i32, fold: i32, factor: v128, low: v128, high: v128, nibbles: v128): v128 {
  const product = i16x8.mul(v128.xor(x, i16x8.shr_u(x, spread)), factor);
  const h = v128.xor(product, i16x8.shr_u(product, fold));
  return i8x16.add(swizzle(low, v128.and(h, nibbles)), swizzle(high, v128.and(i16x8.shr_u(h, 4), nibbles)));
}

// @ts-ignore: decorator
@inline
function swizzleSums(part: usize, tile: usize, tiles: i32, to: usize, spread: i32, fold: i32): void {
  const k = <usize>load<i32>(part, BITS);
  const first = v128.load(part, FIRST);
  const rest = v128.load(part, REST);
  const powers = v128.load(part, POWERS);
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (; tiles; tiles--) {
    let at = tile;
    for (let i = 0; i < 4; i++) {
      const left = sums(windows(v128.load(at), first, rest, powers), spread, fold, factor, low, high, nibbles);
      const right = sums(windows(v128.load(at + 2 * k), first, rest, powers), spread, fold, factor, low, high, nibbles);
      storeQuads(to, left, right);
      at += k;
      const last = i == 3 ? lastFields(part, tile, k) : v128.load(at + 2 * k);
      const nextLeft = sums(windows(v128.load(at), first, rest, powers), spread, fold, factor, low, high, nibbles);
      const nextRight = sums(windows(last, first, rest, powers), spread, fold, factor, low, high, nibbles);
      storeQuads(to + 32, nextLeft, nextRight);
      to += 64;
      at += 3 * k;
    }
    tile += 16 * k;
  }
}

/** Where in 16 bytes lie the states of rows 0 and 2 of two pairs of columns, of 1 and 3 after a shift, of 4 and 6, ... */
const TWO_BIT_STATES = memory.data<u8>(
  // prettier-ignore
  [
  0, 1, 8, 9, 128, 128, 128, 128, 1, 2, 9, 10, 128, 128, 128, 128,
  128, 128, 128, 128, 0, 1, 8, 9, 128, 128, 128, 128, 1, 2, 9, 10,
  2, 3, 10, 11, 128, 128, 128, 128, 3, 4, 11, 12, 128, 128, 128, 128,
  128, 128, 128, 128, 2, 3, 10, 11, 128, 128, 128, 128, 3, 4, 11, 12,
  ],
  16,
);

/** Fields of 4 bits: half of the states begin at a byte, and 16 bytes hold two pairs of columns of eight rows. */
// @ts-ignore: decorator
@inline
function twoBitSums(part: usize, tile: usize, tiles: i32, to: usize, spread: i32, fold: i32): void {
  const even = v128.load(TWO_BIT_STATES);
  const odd = v128.load(TWO_BIT_STATES, 16);
  const nextEven = v128.load(TWO_BIT_STATES, 32);
  const nextOdd = v128.load(TWO_BIT_STATES, 48);
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (; tiles; tiles--) {
    for (let i = 0; i < 4; i++) {
      let v = v128.load(tile);
      let w = i64x2.shr_u(v, 4);
      let x = v128.or(swizzle(v, even), swizzle(w, odd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles));
      x = v128.or(swizzle(v, nextEven), swizzle(w, nextOdd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles), 16);
      v = v128.load(tile, 4);
      // The stream is circular.
      if (i == 3) v = i16x8.replace_lane(v, 6, load<u16>(tile - 48));
      w = i64x2.shr_u(v, 4);
      x = v128.or(swizzle(v, even), swizzle(w, odd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles), 32);
      x = v128.or(swizzle(v, nextEven), swizzle(w, nextOdd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles), 48);
      tile += 16;
      to += 64;
    }
  }
}

/** Fields of 8 bits: a state is a byte and the next. */
// @ts-ignore: decorator
@inline
function fourBitSums(part: usize, tile: usize, tiles: i32, to: usize, spread: i32, fold: i32): void {
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (; tiles; tiles--) {
    for (let i = 0; i < 4; i++) {
      const a = v128.load(tile);
      const nextA = v128.load(tile, 1);
      const b = v128.load(tile, 16);
      let nextB = v128.load(tile, 17);
      if (i == 3) nextB = i8x16.replace_lane(nextB, 15, load<u8>(tile - 96));
      storeQuads(
        to, sums(zipLow(a, nextA), spread, fold, factor, low, high, nibbles),
        sums(zipLow(b, nextB), spread, fold, factor, low, high, nibbles),
      );
      storeQuads(
        to + 32, sums(zipHigh(a, nextA), spread, fold, factor, low, high, nibbles),
        sums(zipHigh(b, nextB), spread, fold, factor, low, high, nibbles),
      );
      tile += 32;
      to += 64;
    }
  }
}
