// Products of weights in tiles of fields (fieldTiles.as.ts). A group of 128 columns of 16 rows is decoded to a
// first-level cache's worth of integers, once for all tokens. Integer sums are exact and groups are added in
// order: the result never depends on the batch.

import { share } from "../../backends/wasm/parallel.as";
import { decodeTiles } from "./fieldTiles.as";
import { isWide, offsetOf, PART, tileBytes, unitOf } from "./plan.as";
import { GROUP } from "./quantize.as";
import { readBytes } from "./tiles.as";
import { addFour, addTokens, storeTile } from "./tileProducts.as";

/** Columns of a tile. */
const SIDE = 16;
const GROUP_TILES = GROUP / SIDE;
/** A decoder's spare bytes for a group, and a decoded group. */
const SPARE: usize = 2048;
const DECODED: usize = 32 * GROUP;

/**
 * args: q, scales, sums, tiles, rowScales, plan, out, tokens, rows, columns, padded, lowTiles, scratch, scratch bytes
 * per thread
 */
export function linearFieldsInt8(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const scales = <usize>load<u32>(args, 4);
  const sums = <usize>load<u32>(args, 8);
  const weights = <usize>load<u32>(args, 12);
  const rowScales = <usize>load<u32>(args, 16);
  const plan = <usize>load<u32>(args, 20);
  const out = <usize>load<u32>(args, 24);
  const tokens = load<i32>(args, 28);
  const rows = load<i32>(args, 32);
  const padded = load<i32>(args, 40);
  const lowTiles = load<i32>(args, 44);
  const spare = <usize>load<u32>(args, 48) + <usize>t * load<u32>(args, 52);
  const decoded = spare + SPARE;
  const f = decoded + DECODED;
  const tiles = (padded + SIDE - 1) / SIDE;
  const groups = (padded + GROUP - 1) / GROUP;
  const bandBytes = tileBytes(plan) * lowTiles + tileBytes(plan + PART) * (tiles - lowTiles);
  const end = share(rows, t + 1, n, SIDE);
  for (let row = share(rows, t, n, SIDE); row < end; row += SIDE) {
    let at = weights + <usize>(row / SIDE) * bandBytes;
    memory.fill(f, 0, <usize>tokens << 6);
    for (let g = 0; g < groups; g++) {
      const last = min(tiles, (g + 1) * GROUP_TILES);
      let tile = g * GROUP_TILES;
      // A group in which the rate changes is added in two parts.
      while (tile < last) {
        const low = tile < lowTiles;
        const part = low ? plan : plan + PART;
        const stop = low ? min(last, lowTiles) : last;
        const first = tile * SIDE;
        const count = min(padded, stop * SIDE) - first;
        const whole = count == min(GROUP, padded - g * GROUP);
        decodeTiles(part, at, stop - tile, decoded, spare);
        at += tileBytes(part) * (stop - tile);
        tile = stop;
        const group = <usize>g << 2;
        if (isWide(part)) addWideTokens(decoded, q + first, padded, count, scales + group, groups, tokens, unitOf(part), f);
        else {
          addTokens(
            decoded, q + first, padded, count, scales + group, sums + group, groups, tokens, whole, unitOf(part),
            offsetOf(part), f,
          );
        }
      }
    }
    storeTile(f, out + (<usize>row << 2), tokens, <usize>rows << 2, rowScales + (<usize>row << 2), end - row);
  }
}

/** As addTokens for weights of 16 bits, which need no offset. */
function addWideTokens(
  weights: usize, a: usize, padded: i32, count: i32, scales: usize, groups: i32, tokens: i32, unit: f32, f: usize,
): void {
  const next = <usize>groups << 2;
  for (let token = 0; token < tokens; token += 2) {
    const scale = load<f32>(scales) * unit;
    if (token + 1 == tokens) {
      addWide(weights, a, count, scale, f);
      return;
    }
    const b = a + padded;
    addWide2(weights, a, b, count, scale, load<f32>(scales + next) * unit, f);
    a = b + padded;
    scales += 2 * next;
    f += 128;
  }
}

/** Two activations as 16 bits, four times. */
// @ts-ignore: decorator
@inline
function wideSplat(a: usize): v128 {
  return i16x8.extend_low_i8x16_s(v128.load16_splat(a));
}

/** As {@link addBytes} for weights of 16 bits. */
function addWide(w: usize, a: usize, count: i32, scale: f32, f: usize): void {
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  for (let i = 0; i < count; i += 4) {
    const left = wideSplat(a);
    const right = wideSplat(a + 2);
    p0 = i32x4.add(p0, i32x4.dot_i16x8_s(left, v128.load(w)));
    p1 = i32x4.add(p1, i32x4.dot_i16x8_s(left, v128.load(w, 16)));
    p2 = i32x4.add(p2, i32x4.dot_i16x8_s(left, v128.load(w, 32)));
    p3 = i32x4.add(p3, i32x4.dot_i16x8_s(left, v128.load(w, 48)));
    q0 = i32x4.add(q0, i32x4.dot_i16x8_s(right, v128.load(w, 64)));
    q1 = i32x4.add(q1, i32x4.dot_i16x8_s(right, v128.load(w, 80)));
    q2 = i32x4.add(q2, i32x4.dot_i16x8_s(right, v128.load(w, 96)));
    q3 = i32x4.add(q3, i32x4.dot_i16x8_s(right, v128.load(w, 112)));
    a += 4;
    w += 128;
  }
  addFour(f, i32x4.add(p0, q0), i32x4.add(p1, q1), i32x4.add(p2, q2), i32x4.add(p3, q3), 0, scale);
}

function addWide2(w: usize, a: usize, b: usize, count: i32, scaleA: f32, scaleB: f32, f: usize): void {
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  for (let i = 0; i < count; i += 2) {
    const va = wideSplat(a);
    const vb = wideSplat(b);
    let v = v128.load(w);
    p0 = i32x4.add(p0, i32x4.dot_i16x8_s(va, v));
    q0 = i32x4.add(q0, i32x4.dot_i16x8_s(vb, v));
    v = v128.load(w, 16);
    p1 = i32x4.add(p1, i32x4.dot_i16x8_s(va, v));
    q1 = i32x4.add(q1, i32x4.dot_i16x8_s(vb, v));
    v = v128.load(w, 32);
    p2 = i32x4.add(p2, i32x4.dot_i16x8_s(va, v));
    q2 = i32x4.add(q2, i32x4.dot_i16x8_s(vb, v));
    v = v128.load(w, 48);
    p3 = i32x4.add(p3, i32x4.dot_i16x8_s(va, v));
    q3 = i32x4.add(q3, i32x4.dot_i16x8_s(vb, v));
    a += 2;
    b += 2;
    w += 64;
  }
  addFour(f, p0, p1, p2, p3, 0, scaleA);
  addFour(f + 64, q0, q1, q2, q3, 0, scaleB);
}

/** Rows [row, row + count), all of one band, as floats. `spare`: 2560 bytes. */
export function readFields(
  weights: usize, plan: usize, lowTiles: i32, rowScales: usize, row: i32, count: i32, out: usize, columns: i32, spare: usize,
): void {
  const tiles = (columns + SIDE - 1) / SIDE;
  const bandBytes = tileBytes(plan) * lowTiles + tileBytes(plan + PART) * (tiles - lowTiles);
  let at = weights + <usize>(row / SIDE) * bandBytes;
  const decoded = spare + SPARE;
  for (let tile = 0; tile < tiles; tile++) {
    const part = tile < lowTiles ? plan : plan + PART;
    decodeTiles(part, at, 1, decoded, spare);
    at += tileBytes(part);
    const first = tile * SIDE;
    for (let k = 0; k < count; k++) {
      const scale = load<f32>(rowScales + (<usize>(row + k) << 2)) * unitOf(part);
      const from = decoded + (<usize>((row & 15) + k) << 2);
      const to = out + (<usize>(k * columns + first) << 2);
      if (isWide(part)) wideToFloats(from, to, min(SIDE, columns - first), scale);
      else readBytes(from, to, min(SIDE, columns - first), scale, offsetOf(part));
    }
  }
}

function wideToFloats(from: usize, to: usize, count: i32, scale: f32): void {
  for (let i = 0; i < count; i++) {
    store<f32>(to + (<usize>i << 2), <f32>load<i16>(from + <usize>(i >> 1) * 64 + ((i & 1) << 1)) * scale);
  }
}
