// Finding fields in a tile, and storing what they stand for.

import { KEEP, WRAP } from "./plan.as";
import { swizzle } from "./simd.as";

/**
 * 16 bits from each of eight successive fields on. `first` finds the byte in which each field begins, `rest` the two
 * bytes after it; a product by a power of two is a shift of its own for each lane.
 */
// @ts-ignore: decorator
@inline
export function windows(v: v128, first: v128, rest: v128, powers: v128): v128 {
  return v128.or(
    i16x8.shr_u(i16x8.mul(swizzle(v, first), powers), 8), i16x8.mul(swizzle(v, rest), powers),
  );
}

/** The last eight fields of a tile, followed by the first: a trellis' stream is circular. */
// @ts-ignore: decorator
@inline
export function lastFields(part: usize, tile: usize, k: usize): v128 {
  const start = swizzle(v128.load64_zero(tile), v128.load(part, WRAP));
  return v128.or(v128.and(v128.load(tile + 15 * k), v128.load(part, KEEP)), start);
}

/** Eight rows of two pairs of columns, one after another in a vector, to eight rows of four columns. */
// @ts-ignore: decorator
@inline
export function storeQuads(to: usize, left: v128, right: v128): void {
  v128.store(to, v128.shuffle<i16>(left, right, 0, 8, 1, 9, 2, 10, 3, 11));
  v128.store(to, v128.shuffle<i16>(left, right, 4, 12, 5, 13, 6, 14, 7, 15), 16);
}

// @ts-ignore: decorator
@inline
export function zipLow(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

// @ts-ignore: decorator
@inline
export function zipHigh(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
