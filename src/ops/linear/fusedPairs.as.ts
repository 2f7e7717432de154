// Products of two tokens straight from the codes: each is decoded once, in registers, and multiplied twice. Every run of
// four columns of a group has a loop of its own: in one, V8 moves the loads ahead and has no registers for the sums.

import { fourthCodes } from "./fusedTiles.as";
import { CRUMBS, DOUBLED, decoderOf, HIGH, LOW, MASK, NIBBLE_PAIRS, NIBBLES } from "./plan.as";
import { dot, swizzle } from "./simd.as";
import { addFour } from "./tileProducts.as";

/** As {@link addFused} for activations `a` and `b`, the second's sums 64 bytes after the first's. */
export function addFused2(
  part: usize, w: usize, a: usize, b: usize, tiles: i32, startA: f32, startB: f32, scaleA: f32, scaleB: f32, f: usize,
): void {
  const decoder = decoderOf(part);
  if (decoder == NIBBLE_PAIRS) addNibblePairs2(part, w, a, b, tiles, startA, startB, scaleA, scaleB, f);
  else if (decoder == CRUMBS) addCrumbs2(part, w, a, b, tiles, startA, startB, scaleA, scaleB, f);
  else addThreeBits2(part, w, a, b, tiles, startA, startB, scaleA, scaleB, f);
}

function addCrumbs2(
  part: usize, w: usize, a: usize, b: usize, tiles: i32, startA: f32, startB: f32, scaleA: f32, scaleB: f32, f: usize,
): void {
  const levels = v128.load(part, LOW);
  const mask = v128.load(part, MASK);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  const stop = w + <usize>tiles * 64;
  let at = w;
  let i: usize = 0;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(levels, v128.and(v128.load(at), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(v128.load(at, 16), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(levels, v128.and(v128.load(at, 32), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(v128.load(at, 48), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 4;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at), 2), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 16), 2), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 32), 2), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 48), 2), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 8;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at), 4), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 16), 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 32), 4), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 48), 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 12;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at), 6), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 16), 6), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 32), 6), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(i16x8.shr_u(v128.load(at, 48), 6), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  addFour(f, p0, p1, p2, p3, startA, scaleA);
  addFour(f + 64, q0, q1, q2, q3, startB, scaleB);
}

function addNibblePairs2(
  part: usize, w: usize, a: usize, b: usize, tiles: i32, startA: f32, startB: f32, scaleA: f32, scaleB: f32, f: usize,
): void {
  const firsts = v128.load(part, LOW);
  const seconds = v128.load(part, HIGH);
  const mask = v128.load(part, NIBBLES);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  const stop = w + <usize>tiles * 64;
  let at = w;
  let i: usize = 0;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(firsts, v128.and(v128.load(at), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(firsts, v128.and(v128.load(at, 16), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(firsts, v128.and(v128.load(at, 32), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(firsts, v128.and(v128.load(at, 48), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 4;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(seconds, v128.and(v128.load(at), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(seconds, v128.and(v128.load(at, 16), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(seconds, v128.and(v128.load(at, 32), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(seconds, v128.and(v128.load(at, 48), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 8;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(firsts, v128.and(i16x8.shr_u(v128.load(at), 4), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(firsts, v128.and(i16x8.shr_u(v128.load(at, 16), 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(firsts, v128.and(i16x8.shr_u(v128.load(at, 32), 4), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(firsts, v128.and(i16x8.shr_u(v128.load(at, 48), 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 12;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(seconds, v128.and(i16x8.shr_u(v128.load(at), 4), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(seconds, v128.and(i16x8.shr_u(v128.load(at, 16), 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(seconds, v128.and(i16x8.shr_u(v128.load(at, 32), 4), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(seconds, v128.and(i16x8.shr_u(v128.load(at, 48), 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  addFour(f, p0, p1, p2, p3, startA, scaleA);
  addFour(f + 64, q0, q1, q2, q3, startB, scaleB);
}

function addThreeBits2(
  part: usize, w: usize, a: usize, b: usize, tiles: i32, startA: f32, startB: f32, scaleA: f32, scaleB: f32, f: usize,
): void {
  const levels = v128.load(part, LOW);
  const doubled = v128.load(part, DOUBLED);
  const mask = v128.load(part, NIBBLES);
  const spare = v128.load(part, HIGH);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  const stop = w + <usize>tiles * 96;
  let at = w;
  let i: usize = 0;
  for (; at < stop; at += 96) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let codes = v128.load(at);
    let x = swizzle(levels, v128.and(codes, mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    codes = v128.load(at, 48);
    x = swizzle(levels, v128.and(codes, mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 4;
  for (; at < stop; at += 96) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let codes = v128.load(at, 16);
    let x = swizzle(levels, v128.and(codes, mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    codes = v128.load(at, 64);
    x = swizzle(levels, v128.and(codes, mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 8;
  for (; at < stop; at += 96) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let codes = v128.load(at, 32);
    let x = swizzle(levels, v128.and(codes, mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    codes = v128.load(at, 80);
    x = swizzle(levels, v128.and(codes, mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  at = w;
  i = 12;
  for (; at < stop; at += 96) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let codes = fourthCodes(v128.load(at), v128.load(at, 16), v128.load(at, 32), spare);
    let x = swizzle(doubled, v128.and(codes, mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(doubled, v128.and(i16x8.shr_u(codes, 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    codes = fourthCodes(v128.load(at, 48), v128.load(at, 64), v128.load(at, 80), spare);
    x = swizzle(doubled, v128.and(codes, mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(doubled, v128.and(i16x8.shr_u(codes, 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 16;
  }
  addFour(f, p0, p1, p2, p3, startA, scaleA);
  addFour(f + 64, q0, q1, q2, q3, startB, scaleB);
}
