// Sums over tiles of 16 rows, four columns after another as 16 rows x 4 bytes, with int8 activations. Integer sums in
// a group of activations are exact; groups are added in order: the result never depends on the batch.

import { madd } from "../../backends/wasm/math.as";
import { dot } from "./simd.as";

/**
 * All tokens by `count` columns of a group, in pairs so that each weight is read once for two:
 * f [tokens, 16] += scale * unit * ((weights - offset) . a). `a`: the first token's activations of these columns, the
 * next token's `padded` bytes on; `scales` and `sums`: the first token's of the group, of `groups` each. Columns that
 * are not the `whole` group are summed here.
 */
export function addTokens(
  weights: usize, a: usize, padded: i32, count: i32, scales: usize, sums: usize, groups: i32, tokens: i32,
  whole: bool, unit: f32, offset: f32, f: usize,
): void {
  const next = <usize>groups << 2;
  for (let token = 0; token < tokens; token += 2) {
    const scale = load<f32>(scales) * unit;
    const start = <f32>(whole ? load<i32>(sums) : sumOf(a, count)) * -offset;
    if (token + 1 == tokens) {
      addBytes(weights, a, count, start, scale, f);
      return;
    }
    const b = a + padded;
    const nextScale = load<f32>(scales + next) * unit;
    const nextStart = <f32>(whole ? load<i32>(sums + next) : sumOf(b, count)) * -offset;
    addBytes2(weights, a, b, count, start, nextStart, scale, nextScale, f);
    a = b + padded;
    scales += 2 * next;
    sums += 2 * next;
    f += 128;
  }
}

export function sumOf(a: usize, count: i32): i32 {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += load<i8>(a + i);
  return sum;
}

/** f [16] += scale * (start + weights . a), weights of 7 bits. */
function addBytes(w: usize, a: usize, count: i32, start: f32, scale: f32, f: usize): void {
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  // Two sets of sums halve the chain of dependent products.
  for (let i = 0; i < count; i += 8) {
    const left = v128.load32_splat(a);
    const right = v128.load32_splat(a, 4);
    p0 = dot(left, v128.load(w), p0);
    p1 = dot(left, v128.load(w, 16), p1);
    p2 = dot(left, v128.load(w, 32), p2);
    p3 = dot(left, v128.load(w, 48), p3);
    q0 = dot(right, v128.load(w, 64), q0);
    q1 = dot(right, v128.load(w, 80), q1);
    q2 = dot(right, v128.load(w, 96), q2);
    q3 = dot(right, v128.load(w, 112), q3);
    a += 8;
    w += 128;
  }
  addFour(f, i32x4.add(p0, q0), i32x4.add(p1, q1), i32x4.add(p2, q2), i32x4.add(p3, q3), start, scale);
}

/** Two tokens; the second's sums follow the first's. */
function addBytes2(
  w: usize, a: usize, b: usize, count: i32, startA: f32, startB: f32, scaleA: f32, scaleB: f32, f: usize,
): void {
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  for (let i = 0; i < count; i += 4) {
    const va = v128.load32_splat(a);
    const vb = v128.load32_splat(b);
    let v = v128.load(w);
    p0 = dot(va, v, p0);
    q0 = dot(vb, v, q0);
    v = v128.load(w, 16);
    p1 = dot(va, v, p1);
    q1 = dot(vb, v, q1);
    v = v128.load(w, 32);
    p2 = dot(va, v, p2);
    q2 = dot(vb, v, q2);
    v = v128.load(w, 48);
    p3 = dot(va, v, p3);
    q3 = dot(vb, v, q3);
    a += 4;
    b += 4;
    w += 64;
  }
  addFour(f, p0, p1, p2, p3, startA, scaleA);
  addFour(f + 64, q0, q1, q2, q3, startB, scaleB);
}

// @ts-ignore: decorator
@inline
export function addFour(f: usize, i0: v128, i1: v128, i2: v128, i3: v128, start: f32, scale: f32): void {
  const s = f32x4.splat(scale);
  const from = f32x4.splat(start);
  addScaled(f, i0, from, s);
  addScaled(f + 16, i1, from, s);
  addScaled(f + 32, i2, from, s);
  addScaled(f + 48, i3, from, s);
}

// @ts-ignore: decorator
@inline
function addScaled(f: usize, sums: v128, start: v128, scale: v128): void {
  v128.store(f, madd(f32x4.add(f32x4.convert_i32x4_s(sums), start), scale, v128.load(f)));
}

const ONES = memory.data<f32>([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 16);

/** Four vectors of sums times their rows' scales; of 16 rows the first `count`. */
// @ts-ignore: decorator
@inline
export function storeSums(out: usize, f0: v128, f1: v128, f2: v128, f3: v128, rowScales: usize, count: i32): void {
  storeRows(out, f0, rowScales, count);
  storeRows(out + 16, f1, rowScales + 16, count - 4);
  storeRows(out + 32, f2, rowScales + 32, count - 8);
  storeRows(out + 48, f3, rowScales + 48, count - 12);
}

/** A vector of sums times its rows' scales; of four rows the first `count`. */
// @ts-ignore: decorator
@inline
export function storeRows(out: usize, f: v128, scales: usize, count: i32): void {
  const y = f32x4.mul(f, v128.load(scales));
  if (count >= 4) {
    v128.store(out, y);
    return;
  }
  if (count > 0) store<f32>(out, f32x4.extract_lane(y, 0));
  if (count > 1) store<f32>(out, f32x4.extract_lane(y, 1), 4);
  if (count > 2) store<f32>(out, f32x4.extract_lane(y, 2), 8);
}

/** The sums f [tokens, 16] of a tile to the outputs, `outStride` bytes a token. No `rowScales`: as they are. */
export function storeTile(f: usize, out: usize, tokens: i32, outStride: usize, rowScales: usize, count: i32): void {
  if (!rowScales) rowScales = ONES;
  for (let token = 0; token < tokens; token++) {
    storeSums(out, v128.load(f), v128.load(f, 16), v128.load(f, 32), v128.load(f, 48), rowScales, count);
    f += 64;
    out += outStride;
  }
}
