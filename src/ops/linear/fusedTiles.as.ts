// Products of one token straight from the codes, for the schemes whose decoding is one byte shuffle.

import { CRUMBS, DOUBLED, decoderOf, HIGH, LOW, MASK, NIBBLE_PAIRS, NIBBLES } from "./plan.as";
import { dot, swizzle } from "./simd.as";
import { addFour } from "./tileProducts.as";

/** f [16] += scale * (start + weights . a) over `tiles` tiles. */
export function addFused(part: usize, w: usize, a: usize, tiles: i32, start: f32, scale: f32, f: usize): void {
  const decoder = decoderOf(part);
  if (decoder == NIBBLE_PAIRS) addNibblePairs(part, w, a, tiles, start, scale, f);
  else if (decoder == CRUMBS) addCrumbs(part, w, a, tiles, start, scale, f);
  else addThreeBits(part, w, a, tiles, start, scale, f);
}

/** Of every eight activations the even ones, then the odd ones. `count`: a multiple of 16. */
export function splitPairs(a: usize, to: usize, count: i32): void {
  for (let i = 0; i < count; i += 16) {
    const v = v128.load(a + i);
    v128.store(to + i, v128.shuffle<i8>(v, v, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
  }
}

/** Takes activations as {@link splitPairs} leaves them. */
function addNibblePairs(part: usize, w: usize, a: usize, tiles: i32, start: f32, scale: f32, f: usize): void {
  const x = v128.load(part, LOW);
  const y = v128.load(part, HIGH);
  const mask = v128.load(part, NIBBLES);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  for (let i = 0; i < tiles; i++) {
    let first = v128.load32_splat(a);
    let second = v128.load32_splat(a, 4);
    let codes = v128.and(v128.load(w), mask);
    p0 = dot(first, swizzle(x, codes), p0);
    q0 = dot(second, swizzle(y, codes), q0);
    codes = v128.and(v128.load(w, 16), mask);
    p1 = dot(first, swizzle(x, codes), p1);
    q1 = dot(second, swizzle(y, codes), q1);
    codes = v128.and(v128.load(w, 32), mask);
    p2 = dot(first, swizzle(x, codes), p2);
    q2 = dot(second, swizzle(y, codes), q2);
    codes = v128.and(v128.load(w, 48), mask);
    p3 = dot(first, swizzle(x, codes), p3);
    q3 = dot(second, swizzle(y, codes), q3);
    first = v128.load32_splat(a, 8);
    second = v128.load32_splat(a, 12);
    codes = v128.and(i16x8.shr_u(v128.load(w), 4), mask);
    p0 = dot(first, swizzle(x, codes), p0);
    q0 = dot(second, swizzle(y, codes), q0);
    codes = v128.and(i16x8.shr_u(v128.load(w, 16), 4), mask);
    p1 = dot(first, swizzle(x, codes), p1);
    q1 = dot(second, swizzle(y, codes), q1);
    codes = v128.and(i16x8.shr_u(v128.load(w, 32), 4), mask);
    p2 = dot(first, swizzle(x, codes), p2);
    q2 = dot(second, swizzle(y, codes), q2);
    codes = v128.and(i16x8.shr_u(v128.load(w, 48), 4), mask);
    p3 = dot(first, swizzle(x, codes), p3);
    q3 = dot(second, swizzle(y, codes), q3);
    a += 16;
    w += 64;
  }
  addFour(f, i32x4.add(p0, q0), i32x4.add(p1, q1), i32x4.add(p2, q2), i32x4.add(p3, q3), start, scale);
}

function addCrumbs(part: usize, w: usize, a: usize, tiles: i32, start: f32, scale: f32, f: usize): void {
  const levels = v128.load(part, LOW);
  const mask = v128.load(part, MASK);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  for (let i = 0; i < tiles; i++) {
    const a0 = v128.load32_splat(a);
    const a1 = v128.load32_splat(a, 4);
    const a2 = v128.load32_splat(a, 8);
    const a3 = v128.load32_splat(a, 12);
    let codes = v128.load(w);
    p0 = dot(a0, swizzle(levels, v128.and(codes, mask)), p0);
    q0 = dot(a1, swizzle(levels, v128.and(i16x8.shr_u(codes, 2), mask)), q0);
    p0 = dot(a2, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), p0);
    q0 = dot(a3, swizzle(levels, v128.and(i16x8.shr_u(codes, 6), mask)), q0);
    codes = v128.load(w, 16);
    p1 = dot(a0, swizzle(levels, v128.and(codes, mask)), p1);
    q1 = dot(a1, swizzle(levels, v128.and(i16x8.shr_u(codes, 2), mask)), q1);
    p1 = dot(a2, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), p1);
    q1 = dot(a3, swizzle(levels, v128.and(i16x8.shr_u(codes, 6), mask)), q1);
    codes = v128.load(w, 32);
    p2 = dot(a0, swizzle(levels, v128.and(codes, mask)), p2);
    q2 = dot(a1, swizzle(levels, v128.and(i16x8.shr_u(codes, 2), mask)), q2);
    p2 = dot(a2, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), p2);
    q2 = dot(a3, swizzle(levels, v128.and(i16x8.shr_u(codes, 6), mask)), q2);
    codes = v128.load(w, 48);
    p3 = dot(a0, swizzle(levels, v128.and(codes, mask)), p3);
    q3 = dot(a1, swizzle(levels, v128.and(i16x8.shr_u(codes, 2), mask)), q3);
    p3 = dot(a2, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), p3);
    q3 = dot(a3, swizzle(levels, v128.and(i16x8.shr_u(codes, 6), mask)), q3);
    a += 16;
    w += 64;
  }
  addFour(f, i32x4.add(p0, q0), i32x4.add(p1, q1), i32x4.add(p2, q2), i32x4.add(p3, q3), start, scale);
}

/** The fourth codes of three nibbles each, bits 3 and 7 of three vectors: in bits 1 to 3 and 5 to 7. */
// @ts-ignore: decorator
@inline
export function fourthCodes(x: v128, y: v128, z: v128, spare: v128): v128 {
  const xy = v128.or(i16x8.shr_u(v128.and(x, spare), 1), v128.and(y, spare));
  return v128.or(i16x8.shr_u(xy, 1), v128.and(z, spare));
}

/** What the low nibbles stand for. The table holds 8 levels twice: the fourth bit does not matter. */
// @ts-ignore: decorator
@inline
function low(levels: v128, codes: v128, mask: v128): v128 {
  return swizzle(levels, v128.and(codes, mask));
}

// @ts-ignore: decorator
@inline
function high(levels: v128, codes: v128, mask: v128): v128 {
  return swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
}

function addThreeBits(part: usize, w: usize, a: usize, tiles: i32, start: f32, scale: f32, f: usize): void {
  const levels = v128.load(part, LOW);
  const doubled = v128.load(part, DOUBLED);
  const mask = v128.load(part, NIBBLES);
  const spare = v128.load(part, HIGH);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  for (let i = 0; i < tiles; i++) {
    const a0 = v128.load32_splat(a);
    const a1 = v128.load32_splat(a, 4);
    const a2 = v128.load32_splat(a, 8);
    const a3 = v128.load32_splat(a, 12);
    let x = v128.load(w);
    let y = v128.load(w, 16);
    let z = v128.load(w, 32);
    let fourth = fourthCodes(x, y, z, spare);
    p0 = dot(a0, low(levels, x, mask), p0);
    p1 = dot(a0, high(levels, x, mask), p1);
    q0 = dot(a1, low(levels, y, mask), q0);
    q1 = dot(a1, high(levels, y, mask), q1);
    p0 = dot(a2, low(levels, z, mask), p0);
    p1 = dot(a2, high(levels, z, mask), p1);
    q0 = dot(a3, low(doubled, fourth, mask), q0);
    q1 = dot(a3, high(doubled, fourth, mask), q1);
    x = v128.load(w, 48);
    y = v128.load(w, 64);
    z = v128.load(w, 80);
    fourth = fourthCodes(x, y, z, spare);
    p2 = dot(a0, low(levels, x, mask), p2);
    p3 = dot(a0, high(levels, x, mask), p3);
    q2 = dot(a1, low(levels, y, mask), q2);
    q3 = dot(a1, high(levels, y, mask), q3);
    p2 = dot(a2, low(levels, z, mask), p2);
    p3 = dot(a2, high(levels, z, mask), p3);
    q2 = dot(a3, low(doubled, fourth, mask), q2);
    q3 = dot(a3, high(doubled, fourth, mask), q3);
    a += 16;
    w += 96;
  }
  addFour(f, i32x4.add(p0, q0), i32x4.add(p1, q1), i32x4.add(p2, q2), i32x4.add(p3, q3), start, scale);
}
