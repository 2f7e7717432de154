// Products of float panels: a few rows of weights, a block of columns of each, by all tokens. Every output is one
// vector accumulator over the columns of a block, and blocks are added in order: the result never depends on the number
// of tokens. Tiles hold at most 12 accumulators, two weights and an input: with 16 vectors V8 begins to spill (at 4 x 3
// outputs 41 GFLOPS, at 6 x 2 60, of 65 that multiply-adds in registers reach on an AMD Zen 5 core).

import { madd, sumLanes4 } from "../../backends/wasm/math.as";

/** Columns of a block: a panel of 16 rows then takes a third of a first-level cache. */
export const BLOCK = 256;
/** Rows of a panel. */
export const PANEL_ROWS = 16;
/** Bytes of a row of a panel, and of a panel. */
export const PANEL_STRIDE: usize = BLOCK * 4;
export const PANEL_BYTES: usize = <usize>PANEL_ROWS * PANEL_STRIDE;

/**
 * f [tokens, 16] += x [tokens, columns] . w [16, columns]^T for at most {@link BLOCK} columns; tokens and rows of
 * weights lie `xStride` and `wStride` bytes apart.
 */
export function addPanel(
  x: usize, xStride: usize, tokens: i32, w: usize, wStride: usize, columns: i32, f: usize,
): void {
  const bytes = <usize>(columns & ~3) << 2;
  let at = x;
  let sums = f;
  let left = tokens;
  for (; left >= 6; left -= 6) {
    for (let row: usize = 0; row < <usize>PANEL_ROWS; row += 2) six(at, xStride, w + row * wStride, wStride, bytes, sums + (row << 2));
    at += 6 * xStride;
    sums += 6 * 64;
  }
  if (left == 2) {
    for (let row: usize = 0; row < <usize>PANEL_ROWS; row += 4) two(at, xStride, w + row * wStride, wStride, bytes, sums + (row << 2));
  } else if (left == 1) {
    for (let row: usize = 0; row < <usize>PANEL_ROWS; row += 8) one(at, w + row * wStride, wStride, bytes, sums + (row << 2));
  } else if (left > 2) {
    for (let row: usize = 0; row < <usize>PANEL_ROWS; row += 2) {
      const from = w + row * wStride;
      const to = sums + (row << 2);
      if (left == 5) five(at, xStride, from, wStride, bytes, to);
      else if (left == 4) four(at, xStride, from, wStride, bytes, to);
      else three(at, xStride, from, wStride, bytes, to);
    }
  }
  if (columns & 3) addTail(x + bytes, xStride, tokens, w + bytes, wStride, columns & 3, f);
}

function addTail(x: usize, xStride: usize, tokens: i32, w: usize, wStride: usize, columns: i32, f: usize): void {
  for (let token = 0; token < tokens; token++) {
    for (let row: usize = 0; row < <usize>PANEL_ROWS; row++) {
      let sum: f32 = 0;
      for (let i: usize = 0; i < <usize>columns << 2; i += 4) sum += load<f32>(x + i) * load<f32>(w + row * wStride + i);
      const to = f + (row << 2);
      store<f32>(to, load<f32>(to) + sum);
    }
    x += xStride;
    f += 64;
  }
}

function six(x: usize, xs: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  byTwo(6, x, xs, w, ws, bytes, f);
}

function five(x: usize, xs: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  byTwo(5, x, xs, w, ws, bytes, f);
}

function four(x: usize, xs: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  byTwo(4, x, xs, w, ws, bytes, f);
}

function three(x: usize, xs: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  byTwo(3, x, xs, w, ws, bytes, f);
}

/** Three to six tokens by two rows. */
// @ts-ignore: decorator
@inline
function byTwo(tokens: i32, x: usize, xs: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  let a0 = f32x4.splat(0);
  let b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0, a4 = a0, b4 = a0, a5 = a0, b5 = a0;
  const x1 = xs, x2 = xs * 2, x3 = xs * 3, x4 = xs * 4, x5 = xs * 5;
  for (const stop = w + bytes; w < stop; w += 16, x += 16) {
    const u = v128.load(w);
    const v = v128.load(w + ws);
    let s = v128.load(x);
    a0 = madd(s, u, a0);
    b0 = madd(s, v, b0);
    s = v128.load(x + x1);
    a1 = madd(s, u, a1);
    b1 = madd(s, v, b1);
    s = v128.load(x + x2);
    a2 = madd(s, u, a2);
    b2 = madd(s, v, b2);
    if (tokens > 3) {
      s = v128.load(x + x3);
      a3 = madd(s, u, a3);
      b3 = madd(s, v, b3);
    }
    if (tokens > 4) {
      s = v128.load(x + x4);
      a4 = madd(s, u, a4);
      b4 = madd(s, v, b4);
    }
    if (tokens > 5) {
      s = v128.load(x + x5);
      a5 = madd(s, u, a5);
      b5 = madd(s, v, b5);
    }
  }
  addPairs(f, a0, b0, a1, b1);
  if (tokens == 3) addPair(f + 128, a2, b2);
  else addPairs(f + 128, a2, b2, a3, b3);
  if (tokens == 5) addPair(f + 256, a4, b4);
  if (tokens == 6) addPairs(f + 256, a4, b4, a5, b5);
}

/** Two tokens by four rows. */
function two(x: usize, xs: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const w1 = ws, w2 = ws * 2, w3 = ws * 3;
  for (const stop = w + bytes; w < stop; w += 16, x += 16) {
    const s = v128.load(x);
    const t = v128.load(x + xs);
    let u = v128.load(w);
    a0 = madd(s, u, a0);
    b0 = madd(t, u, b0);
    u = v128.load(w + w1);
    a1 = madd(s, u, a1);
    b1 = madd(t, u, b1);
    u = v128.load(w + w2);
    a2 = madd(s, u, a2);
    b2 = madd(t, u, b2);
    u = v128.load(w + w3);
    a3 = madd(s, u, a3);
    b3 = madd(t, u, b3);
  }
  addFour(f, a0, a1, a2, a3);
  addFour(f + 64, b0, b1, b2, b3);
}

/** One token by eight rows. */
function one(x: usize, w: usize, ws: usize, bytes: usize, f: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  const w1 = ws, w2 = ws * 2, w3 = ws * 3, w4 = ws * 4, w5 = ws * 5, w6 = ws * 6, w7 = ws * 7;
  for (const stop = w + bytes; w < stop; w += 16, x += 16) {
    const s = v128.load(x);
    a0 = madd(s, v128.load(w), a0);
    a1 = madd(s, v128.load(w + w1), a1);
    a2 = madd(s, v128.load(w + w2), a2);
    a3 = madd(s, v128.load(w + w3), a3);
    a4 = madd(s, v128.load(w + w4), a4);
    a5 = madd(s, v128.load(w + w5), a5);
    a6 = madd(s, v128.load(w + w6), a6);
    a7 = madd(s, v128.load(w + w7), a7);
  }
  addFour(f, a0, a1, a2, a3);
  addFour(f + 16, a4, a5, a6, a7);
}

// @ts-ignore: decorator
@inline
function addFour(f: usize, a: v128, b: v128, c: v128, d: v128): void {
  v128.store(f, f32x4.add(v128.load(f), sumLanes4(a, b, c, d)));
}

/** Sums of two tokens by two rows. */
// @ts-ignore: decorator
@inline
function addPairs(f: usize, a0: v128, b0: v128, a1: v128, b1: v128): void {
  const sums = sumLanes4(a0, b0, a1, b1);
  v128.store64_lane(f, f32x4.add(v128.load64_zero(f), sums), 0);
  v128.store64_lane(f + 64, f32x4.add(v128.load64_splat(f + 64), sums), 1);
}

// @ts-ignore: decorator
@inline
function addPair(f: usize, a: v128, b: v128): void {
  v128.store64_lane(f, f32x4.add(v128.load64_zero(f), sumLanes4(a, b, a, b)), 0);
}
