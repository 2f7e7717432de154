// Codes that a shuffle of 16 bytes turns into values, or that are the values.

import { storeQuads, windows, zipHigh, zipLow } from "./fields.as";
import { fourthCodes } from "./fusedTiles.as";
import { BITS, DOUBLED, FACTOR, FIRST, HIGH, LOW, MASK, NIBBLES, POWERS, REST } from "./plan.as";
import { swizzle } from "./simd.as";

/** Pairs of scalar codes of up to 7 bits, as they are. */
export function decodeUniform(part: usize, tile: usize, to: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const first = v128.load(part, FIRST);
  const rest = v128.load(part, REST);
  const powers = v128.load(part, POWERS);
  const mask = v128.load(part, MASK);
  const highMask = v128.load(part, HIGH);
  const factor = v128.load(part, FACTOR);
  for (let i = 0; i < 8; i++) {
    let x = windows(v128.load(tile), first, rest, powers);
    const left = v128.or(v128.and(x, mask), v128.and(i16x8.mul(x, factor), highMask));
    x = windows(v128.load(tile + 2 * k), first, rest, powers);
    const right = v128.or(v128.and(x, mask), v128.and(i16x8.mul(x, factor), highMask));
    storeQuads(to, left, right);
    to += 32;
    tile += i & 1 ? 3 * k : k;
  }
}

/** Rows by four pairs of columns in the low nibbles of 64 bytes, four more in the high ones. */
export function decodeNibblePairs(part: usize, tile: usize, to: usize): void {
  const x = v128.load(part, LOW);
  const y = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (let v: usize = 0; v < 64; v += 16) {
    let codes = v128.load(tile + v);
    storeFourRows(to + v, swizzle(x, v128.and(codes, nibbles)), swizzle(y, v128.and(codes, nibbles)));
    codes = v128.and(i16x8.shr_u(codes, 4), nibbles);
    storeFourRows(to + v + 128, swizzle(x, codes), swizzle(y, codes));
  }
}

/** First and second values of four pairs of four rows, to two runs of four columns. */
// @ts-ignore: decorator
@inline
function storeFourRows(to: usize, x: v128, y: v128): void {
  const low = zipLow(x, y);
  const high = zipHigh(x, y);
  v128.store(to, v128.shuffle<i32>(low, high, 0, 2, 4, 6));
  v128.store(to, v128.shuffle<i32>(low, high, 1, 3, 5, 7), 64);
}

/** Rows by four columns in the low two bits of 64 bytes, the next four in the next bits, and so on. */
export function decodeCrumbs(part: usize, tile: usize, to: usize): void {
  const levels = v128.load(part, LOW);
  const mask = v128.load(part, MASK);
  for (let v: usize = 0; v < 64; v += 16) {
    const codes = v128.load(tile + v);
    v128.store(to + v, swizzle(levels, v128.and(codes, mask)));
    v128.store(to + v, swizzle(levels, v128.and(i16x8.shr_u(codes, 2), mask)), 64);
    v128.store(to + v, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), 128);
    v128.store(to + v, swizzle(levels, v128.and(i16x8.shr_u(codes, 6), mask)), 192);
  }
}

/**
 * Rows 8 i to 8 i + 7 in 48 bytes: the first four rows in the low nibbles, the others in the high ones. Three runs of
 * four columns are the low three bits of a nibble of their 16 bytes, the fourth run is the three fourth bits.
 */
export function decodeThreeBits(part: usize, tile: usize, to: usize): void {
  const levels = v128.load(part, LOW);
  const doubled = v128.load(part, DOUBLED);
  const mask = v128.load(part, NIBBLES);
  const spare = v128.load(part, HIGH);
  for (let half: usize = 0; half < 2; half++) {
    const x = v128.load(tile);
    const y = v128.load(tile, 16);
    const z = v128.load(tile, 32);
    storeNibbles(to, levels, x, mask);
    storeNibbles(to + 64, levels, y, mask);
    storeNibbles(to + 128, levels, z, mask);
    storeNibbles(to + 192, doubled, fourthCodes(x, y, z, spare), mask);
    tile += 48;
    to += 32;
  }
}

// @ts-ignore: decorator
@inline
function storeNibbles(to: usize, levels: v128, codes: v128, mask: v128): void {
  v128.store(to, swizzle(levels, v128.and(codes, mask)));
  v128.store(to, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), 16);
}
