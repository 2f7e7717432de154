import { exp4, madd, maxLanes, sumLanes, tanh4 } from "../../backends/wasm/math.as";
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
      const shrink = f32x4.extract_lane(exp4(f32x4.splat(largest - blockMax)), 0);
      total *= shrink;
      scaleRow(out, headSize, shrink);
    }
    largest = blockMax;
    total += exponentiate(scores, count, largest);
    accumulate(out, values + <usize>start * stride, stride, count, headSize, scores);
  }
  scaleRow(out, headSize, 1 / total);
}

function scoreBlock(
  q: usize,
  keys: usize,
  stride: usize,
  count: i32,
  headSize: i32,
  scale: f32,
  softcap: f32,
  scores: usize,
): f32 {
  const vectors = headSize & ~3;
  let largest: f32 = -Infinity;
  for (let i = 0; i < count; i++) {
    const key = keys + <usize>i * stride;
    let a = f32x4.splat(0);
    let b = a;
    let d = 0;
    for (; d + 8 <= vectors; d += 8) {
      const at = (<usize>d) << 2;
      a = madd(v128.load(q + at), v128.load(key + at), a);
      b = madd(v128.load(q + at, 16), v128.load(key + at, 16), b);
    }
    for (; d + 4 <= vectors; d += 4) {
      const at = (<usize>d) << 2;
      a = madd(v128.load(q + at), v128.load(key + at), a);
    }
    let score = sumLanes(f32x4.add(a, b));
    for (; d < headSize; d++) score += load<f32>(q + ((<usize>d) << 2)) * load<f32>(key + ((<usize>d) << 2));
    score *= scale;
    if (softcap != 0) score = softcap * f32x4.extract_lane(tanh4(f32x4.splat(score / softcap)), 0);
    store<f32>(scores + ((<usize>i) << 2), score);
    largest = max(largest, score);
  }
  return largest;
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
    const e = f32x4.extract_lane(exp4(f32x4.splat(load<f32>(at) - largest)), 0);
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
