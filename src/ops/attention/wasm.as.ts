import { exp1, exp4, madd, maxLanes, sumLanes, sumLanes4, tanh4 } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/** Positions per block of the online softmax; a thread's scratch holds their scores. */
const BLOCK = 128;

/** args: q, keys, values, capacity, positions, sequences, out, rows, heads, kvHeads, headSize, scale, window, softcap, scratch */
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
  const scores = <usize>load<u32>(args, 56) + <usize>t * (BLOCK << 2);

  const headBytes = (<usize>headSize) << 2;
  const stride = <usize>kvHeads * headBytes;
  const group = heads / kvHeads;
  const units = rows * heads;
  for (let unit = t; unit < units; unit += n) {
    const row = unit / heads;
    const head = unit - row * heads;
    const word = (<usize>row) << 2;
    const position = load<i32>(positions + word);
    const first = window ? max(0, position - window + 1) : 0;
    const base = <usize>load<i32>(sequences + word) * capacity * stride + <usize>(head / group) * headBytes;
    attendHead(
      q + <usize>unit * headBytes,
      keys + base,
      values + base,
      stride,
      first,
      position + 1,
      out + <usize>unit * headBytes,
      headSize,
      scale,
      softcap,
      scores,
    );
  }
}

function attendHead(
  q: usize,
  keys: usize,
  values: usize,
  stride: usize,
  first: i32,
  end: i32,
  out: usize,
  headSize: i32,
  scale: f32,
  softcap: f32,
  scores: usize,
): void {
  memory.fill(out, 0, (<usize>headSize) << 2);
  let largest: f32 = -Infinity;
  let total: f32 = 0;
  for (let start = first; start < end; start += BLOCK) {
    const count = min(BLOCK, end - start);
    let blockMax = scoreBlock(
      q,
      keys + <usize>start * stride,
      stride,
      count,
      headSize,
      scale,
      softcap,
      scores,
    );
    blockMax = max(blockMax, largest);
    if (total != 0 && blockMax > largest) {
      const shrink = exp1(largest - blockMax);
      total *= shrink;
      scaleRow(out, headSize, shrink);
    }
    largest = blockMax;
    total += exponentiate(scores, count, largest);
    accumulate(out, values + <usize>start * stride, stride, count, headSize, scores);
  }
  scaleRow(out, headSize, 1 / total);
}

/** Scores of `count` keys, four at a time; the last four may name a key twice. */
function scoreBlock(
  q: usize, keys: usize, stride: usize, count: i32, headSize: i32, scale: f32, softcap: f32, scores: usize,
): f32 {
  const vectors = headSize & ~3;
  const last = keys + <usize>(count - 1) * stride;
  let largest = f32x4.splat(-Infinity);
  for (let i = 0; i < count; i += 4) {
    const k0 = keys + <usize>i * stride;
    const k1 = min(k0 + stride, last);
    const k2 = min(k0 + stride * 2, last);
    const k3 = min(k0 + stride * 3, last);
    let a0 = f32x4.splat(0), a1 = a0, a2 = a0, a3 = a0;
    for (let d = 0; d < vectors; d += 4) {
      const at = <usize>d << 2;
      const v = v128.load(q + at);
      a0 = madd(v, v128.load(k0 + at), a0);
      a1 = madd(v, v128.load(k1 + at), a1);
      a2 = madd(v, v128.load(k2 + at), a2);
      a3 = madd(v, v128.load(k3 + at), a3);
    }
    let score = sumLanes4(a0, a1, a2, a3);
    for (let d = vectors; d < headSize; d++) {
      const at = <usize>d << 2;
      const rest = f32x4(load<f32>(k0 + at), load<f32>(k1 + at), load<f32>(k2 + at), load<f32>(k3 + at));
      score = madd(v128.load32_splat(q + at), rest, score);
    }
    score = f32x4.mul(score, f32x4.splat(scale));
    if (softcap != 0) score = f32x4.mul(f32x4.splat(softcap), tanh4(f32x4.mul(score, f32x4.splat(1 / softcap))));
    v128.store(scores + (<usize>i << 2), score);
    largest = f32x4.pmax(largest, score);
  }
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

function accumulate(
  out: usize,
  values: usize,
  stride: usize,
  count: i32,
  headSize: i32,
  scores: usize,
): void {
  let d = 0;
  for (; d + 16 <= headSize; d += 16) {
    const at = out + ((<usize>d) << 2);
    let a = v128.load(at);
    let b = v128.load(at, 16);
    let c = v128.load(at, 32);
    let e = v128.load(at, 48);
    let value = values + ((<usize>d) << 2);
    for (let i = 0; i < count; i++) {
      const p = v128.load32_splat(scores + ((<usize>i) << 2));
      a = madd(p, v128.load(value), a);
      b = madd(p, v128.load(value, 16), b);
      c = madd(p, v128.load(value, 32), c);
      e = madd(p, v128.load(value, 48), e);
      value += stride;
    }
    v128.store(at, a);
    v128.store(at, b, 16);
    v128.store(at, c, 32);
    v128.store(at, e, 48);
  }
  for (; d < headSize; d++) {
    const at = out + ((<usize>d) << 2);
    let sum = load<f32>(at);
    for (let i = 0; i < count; i++) {
      sum +=
        load<f32>(scores + ((<usize>i) << 2)) * load<f32>(values + <usize>i * stride + ((<usize>d) << 2));
    }
    store<f32>(at, sum);
  }
}

function scaleRow(x: usize, size: i32, factor: f32): void {
  for (let i = 0; i < size; i++) {
    const at = x + ((<usize>i) << 2);
    store<f32>(at, load<f32>(at) * factor);
  }
}
