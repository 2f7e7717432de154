import { exp1, exp4, madd, maxLanes, sumLanes, sumLanes4, tanh4 } from "../../backends/wasm/math.as";

/** Positions per block of the online softmax; a thread's scratch holds the scores of two heads. */
const BLOCK = 128;

/**
 * Heads that share keys and values go in pairs: a loaded vector then feeds two sums, and the eight sums under way hide
 * the latency of their additions (four would wait half the time). The odd head of a group is paired with itself.
 *
 * args: q, keys, values, capacity, positions, sequences, out, rows, heads, kvHeads, headSize, scale, window, softcap, scratch
 */
export function attention(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const keys = <usize>load<u32>(args, 4);
  const values = <usize>load<u32>(args, 8);
  const capacity = load<i32>(args, 12);
  const positions = <usize>load<u32>(args, 16);
  const sequences = <usize>load<u32>(args, 20);
  const out = <usize>load<u32>(args, 24);
  const rows = load<i32>(args, 28);
  const heads = load<i32>(args, 32);
  const kvHeads = load<i32>(args, 36);
  const headSize = load<i32>(args, 40);
  const scale = load<f32>(args, 44);
  const window = load<i32>(args, 48);
  const softcap = load<f32>(args, 52);
  const scores = <usize>load<u32>(args, 56) + <usize>t * (BLOCK << 3);

  const headBytes = (<usize>headSize) << 2;
  const stride = <usize>kvHeads * headBytes;
  const group = heads / kvHeads;
  const places = rows * kvHeads;
  const units = places * ((group + 1) >> 1);
  for (let unit = t; unit < units; unit += n) {
    const pair = (unit / places) << 1;
    const place = unit % places;
    const row = place / kvHeads;
    const kvHead = place - row * kvHeads;
    const word = (<usize>row) << 2;
    const position = load<i32>(positions + word);
    const base = <usize>load<i32>(sequences + word) * capacity * stride + <usize>kvHead * headBytes;
    const first = <usize>(row * heads + kvHead * group + pair) * headBytes;
    attendPair(
      q + first,
      out + first,
      pair + 1 < group ? headBytes : 0,
      keys + base,
      values + base,
      stride,
      window ? max(0, position - window + 1) : 0,
      position + 1,
      headSize,
      scale,
      softcap,
      scores,
    );
  }
}

/** Two heads, `apart` bytes from each other in queries and outputs; 0 where both are the same head. */
function attendPair(
  q: usize,
  out: usize,
  apart: usize,
  keys: usize,
  values: usize,
  stride: usize,
  first: i32,
  end: i32,
  headSize: i32,
  scale: f32,
  softcap: f32,
  scores: usize,
): void {
  const scores1 = scores + (BLOCK << 2);
  const out1 = out + apart;
  memory.fill(out, 0, (<usize>headSize) << 2);
  memory.fill(out1, 0, (<usize>headSize) << 2);
  let largest0: f32 = -Infinity;
  let largest1: f32 = -Infinity;
  let total0: f32 = 0;
  let total1: f32 = 0;
  for (let start = first; start < end; start += BLOCK) {
    const count = min(BLOCK, end - start);
    const place = <usize>start * stride;
    scorePair(q, q + apart, keys + place, stride, count, headSize, scale, softcap, scores);
    const max0 = max(largest0, largestOf(scores, count));
    const max1 = max(largest1, largestOf(scores1, count));
    if (start > first) {
      if (max0 > largest0) {
        const shrink = exp1(largest0 - max0);
        total0 *= shrink;
        scaleRow(out, headSize, shrink);
      }
      if (max1 > largest1) {
        const shrink = exp1(largest1 - max1);
        total1 *= shrink;
        if (apart) scaleRow(out1, headSize, shrink);
      }
    }
    largest0 = max0;
    largest1 = max1;
    total0 += exponentiate(scores, count, max0);
    total1 += exponentiate(scores1, count, max1);
    accumulatePair(out, out1, values + place, stride, count, headSize, scores);
  }
  scaleRow(out, headSize, 1 / total0);
  if (apart) scaleRow(out1, headSize, 1 / total1);
}

/** Scores of `count` keys, four at a time; the last four may name a key twice. The second head's follow, BLOCK later. */
function scorePair(
  q0: usize, q1: usize, keys: usize, stride: usize, count: i32, headSize: i32, scale: f32, softcap: f32, scores: usize,
): void {
  const vectors = headSize & ~3;
  const last = keys + <usize>(count - 1) * stride;
  for (let i = 0; i < count; i += 4) {
    const k0 = keys + <usize>i * stride;
    const k1 = min(k0 + stride, last);
    const k2 = min(k0 + stride * 2, last);
    const k3 = min(k0 + stride * 3, last);
    let a0 = f32x4.splat(0), a1 = a0, a2 = a0, a3 = a0;
    let b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    for (let d = 0; d < vectors; d += 4) {
      const at = <usize>d << 2;
      const u = v128.load(q0 + at);
      const v = v128.load(q1 + at);
      let k = v128.load(k0 + at);
      a0 = madd(u, k, a0);
      b0 = madd(v, k, b0);
      k = v128.load(k1 + at);
      a1 = madd(u, k, a1);
      b1 = madd(v, k, b1);
      k = v128.load(k2 + at);
      a2 = madd(u, k, a2);
      b2 = madd(v, k, b2);
      k = v128.load(k3 + at);
      a3 = madd(u, k, a3);
      b3 = madd(v, k, b3);
    }
    let score0 = sumLanes4(a0, a1, a2, a3);
    let score1 = sumLanes4(b0, b1, b2, b3);
    for (let d = vectors; d < headSize; d++) {
      const at = <usize>d << 2;
      const rest = f32x4(load<f32>(k0 + at), load<f32>(k1 + at), load<f32>(k2 + at), load<f32>(k3 + at));
      score0 = madd(v128.load32_splat(q0 + at), rest, score0);
      score1 = madd(v128.load32_splat(q1 + at), rest, score1);
    }
    const at = scores + (<usize>i << 2);
    v128.store(at, scaled(score0, scale, softcap));
    v128.store(at, scaled(score1, scale, softcap), BLOCK << 2);
  }
}

// @ts-ignore: decorator
@inline
function scaled(score: v128, scale: f32, softcap: f32): v128 {
  const value = f32x4.mul(score, f32x4.splat(scale));
  if (softcap == 0) return value;
  return f32x4.mul(f32x4.splat(softcap), tanh4(f32x4.mul(value, f32x4.splat(1 / softcap))));
}

/** Scores are there in fours; the last four repeat the last key's. */
function largestOf(scores: usize, count: i32): f32 {
  let largest = v128.load(scores);
  for (let i = 4; i < count; i += 4) largest = f32x4.pmax(largest, v128.load(scores + (<usize>i << 2)));
  return maxLanes(largest);
}

/** scores = e^(scores - largest); returns their sum. */
function exponentiate(scores: usize, count: i32, largest: f32): f32 {
  const shift = f32x4.splat(largest);
  let sums = f32x4.splat(0);
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    const at = scores + ((<usize>i) << 2);
    const e = exp4(f32x4.sub(v128.load(at), shift));
    v128.store(at, e);
    sums = f32x4.add(sums, e);
  }
  let total = sumLanes(sums);
  for (; i < count; i++) {
    const at = scores + ((<usize>i) << 2);
    const e = exp1(load<f32>(at) - largest);
    store<f32>(at, e);
    total += e;
  }
  return total;
}

function accumulatePair(
  out0: usize,
  out1: usize,
  values: usize,
  stride: usize,
  count: i32,
  headSize: i32,
  scores: usize,
): void {
  let d = 0;
  for (; d + 16 <= headSize; d += 16) {
    const at0 = out0 + ((<usize>d) << 2);
    const at1 = out1 + ((<usize>d) << 2);
    let a0 = v128.load(at0);
    let a1 = v128.load(at0, 16);
    let a2 = v128.load(at0, 32);
    let a3 = v128.load(at0, 48);
    let b0 = v128.load(at1);
    let b1 = v128.load(at1, 16);
    let b2 = v128.load(at1, 32);
    let b3 = v128.load(at1, 48);
    let value = values + ((<usize>d) << 2);
    for (let i = 0; i < count; i++) {
      const score = scores + ((<usize>i) << 2);
      const u = v128.load32_splat(score);
      const v = v128.load32_splat(score, BLOCK << 2);
      let x = v128.load(value);
      a0 = madd(u, x, a0);
      b0 = madd(v, x, b0);
      x = v128.load(value, 16);
      a1 = madd(u, x, a1);
      b1 = madd(v, x, b1);
      x = v128.load(value, 32);
      a2 = madd(u, x, a2);
      b2 = madd(v, x, b2);
      x = v128.load(value, 48);
      a3 = madd(u, x, a3);
      b3 = madd(v, x, b3);
      value += stride;
    }
    v128.store(at0, a0);
    v128.store(at0, a1, 16);
    v128.store(at0, a2, 32);
    v128.store(at0, a3, 48);
    v128.store(at1, b0);
    v128.store(at1, b1, 16);
    v128.store(at1, b2, 32);
    v128.store(at1, b3, 48);
  }
  for (; d < headSize; d++) {
    const column = (<usize>d) << 2;
    let sum0 = load<f32>(out0 + column);
    let sum1 = load<f32>(out1 + column);
    for (let i = 0; i < count; i++) {
      const score = scores + ((<usize>i) << 2);
      const x = load<f32>(values + <usize>i * stride + column);
      sum0 += load<f32>(score) * x;
      sum1 += load<f32>(score + (BLOCK << 2)) * x;
    }
    store<f32>(out0 + column, sum0);
    store<f32>(out1 + column, sum1);
  }
}

function scaleRow(x: usize, size: i32, factor: f32): void {
  let i = 0;
  for (; i + 4 <= size; i += 4) {
    const at = x + ((<usize>i) << 2);
    v128.store(at, f32x4.mul(v128.load(at), f32x4.splat(factor)));
  }
  for (; i < size; i++) {
    const at = x + ((<usize>i) << 2);
    store<f32>(at, load<f32>(at) * factor);
  }
}
