// Sums of values, weighted: sums [queries, size] += weights [queries, 64] . values [count, size]. Every element is summed
// over the positions in order, whatever the number of queries. Tiles have at most 12 accumulators (see floatTile.as.ts).

import { madd } from "../../backends/wasm/math.as";

/** Bytes from the weights of a query to the next one's. */
const WEIGHTS: usize = 256;

export function mixValues(
  sums: usize, weights: usize, queries: i32, values: usize, count: i32, size: i32,
): void {
  const row = <usize>size << 2;
  let left = queries;
  for (; left >= 6; left -= 6) {
    const done = pairs(6, sums, row, weights, values, count, size);
    rest(6, sums, row, weights, values, count, size, done);
    sums += 6 * row;
    weights += 6 * WEIGHTS;
  }
  if (left == 0) return;
  let done: i32;
  if (left == 5) done = pairs(5, sums, row, weights, values, count, size);
  else if (left == 4) done = pairs(4, sums, row, weights, values, count, size);
  else if (left == 3) done = pairs(3, sums, row, weights, values, count, size);
  else if (left == 2) done = quads(2, sums, row, weights, values, count, size);
  else done = quads(1, sums, row, weights, values, count, size);
  rest(left, sums, row, weights, values, count, size, done);
}

/** Three to six queries by two vectors at a time; returns how many elements are done. */
// @ts-ignore: decorator
@inline
function pairs(
  queries: i32, sums: usize, row: usize, weights: usize, values: usize, count: i32, size: i32,
): i32 {
  let d = 0;
  for (; d + 8 <= size; d += 8) {
    const s0 = sums + (<usize>d << 2);
    const s1 = s0 + row, s2 = s1 + row, s3 = s2 + row, s4 = s3 + row, s5 = s4 + row;
    let a0 = v128.load(s0), b0 = v128.load(s0, 16);
    let a1 = v128.load(s1), b1 = v128.load(s1, 16);
    let a2 = v128.load(s2), b2 = v128.load(s2, 16);
    let a3 = a0, b3 = a0, a4 = a0, b4 = a0, a5 = a0, b5 = a0;
    if (queries > 3) {
      a3 = v128.load(s3);
      b3 = v128.load(s3, 16);
    }
    if (queries > 4) {
      a4 = v128.load(s4);
      b4 = v128.load(s4, 16);
    }
    if (queries > 5) {
      a5 = v128.load(s5);
      b5 = v128.load(s5, 16);
    }
    let value = values + (<usize>d << 2);
    let w = weights;
    for (const stop = weights + (<usize>count << 2); w < stop; w += 4, value += row) {
      const u = v128.load(value);
      const v = v128.load(value, 16);
      let p = v128.load32_splat(w);
      a0 = madd(p, u, a0);
      b0 = madd(p, v, b0);
      p = v128.load32_splat(w, WEIGHTS);
      a1 = madd(p, u, a1);
      b1 = madd(p, v, b1);
      p = v128.load32_splat(w, 2 * WEIGHTS);
      a2 = madd(p, u, a2);
      b2 = madd(p, v, b2);
      if (queries > 3) {
        p = v128.load32_splat(w, 3 * WEIGHTS);
        a3 = madd(p, u, a3);
        b3 = madd(p, v, b3);
      }
      if (queries > 4) {
        p = v128.load32_splat(w, 4 * WEIGHTS);
        a4 = madd(p, u, a4);
        b4 = madd(p, v, b4);
      }
      if (queries > 5) {
        p = v128.load32_splat(w, 5 * WEIGHTS);
        a5 = madd(p, u, a5);
        b5 = madd(p, v, b5);
      }
    }
    v128.store(s0, a0);
    v128.store(s0, b0, 16);
    v128.store(s1, a1);
    v128.store(s1, b1, 16);
    v128.store(s2, a2);
    v128.store(s2, b2, 16);
    if (queries > 3) {
      v128.store(s3, a3);
      v128.store(s3, b3, 16);
    }
    if (queries > 4) {
      v128.store(s4, a4);
      v128.store(s4, b4, 16);
    }
    if (queries > 5) {
      v128.store(s5, a5);
      v128.store(s5, b5, 16);
    }
  }
  return d;
}

/** One or two queries by four vectors at a time. */
// @ts-ignore: decorator
@inline
function quads(
  queries: i32, sums: usize, row: usize, weights: usize, values: usize, count: i32, size: i32,
): i32 {
  let d = 0;
  for (; d + 16 <= size; d += 16) {
    const s0 = sums + (<usize>d << 2);
    const s1 = s0 + row;
    let a0 = v128.load(s0), a1 = v128.load(s0, 16), a2 = v128.load(s0, 32), a3 = v128.load(s0, 48);
    let b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    if (queries > 1) {
      b0 = v128.load(s1);
      b1 = v128.load(s1, 16);
      b2 = v128.load(s1, 32);
      b3 = v128.load(s1, 48);
    }
    let value = values + (<usize>d << 2);
    let w = weights;
    for (const stop = weights + (<usize>count << 2); w < stop; w += 4, value += row) {
      const p = v128.load32_splat(w);
      const q = v128.load32_splat(w, WEIGHTS);
      let v = v128.load(value);
      a0 = madd(p, v, a0);
      if (queries > 1) b0 = madd(q, v, b0);
      v = v128.load(value, 16);
      a1 = madd(p, v, a1);
      if (queries > 1) b1 = madd(q, v, b1);
      v = v128.load(value, 32);
      a2 = madd(p, v, a2);
      if (queries > 1) b2 = madd(q, v, b2);
      v = v128.load(value, 48);
      a3 = madd(p, v, a3);
      if (queries > 1) b3 = madd(q, v, b3);
    }
    v128.store(s0, a0);
    v128.store(s0, a1, 16);
    v128.store(s0, a2, 32);
    v128.store(s0, a3, 48);
    if (queries > 1) {
      v128.store(s1, b0);
      v128.store(s1, b1, 16);
      v128.store(s1, b2, 32);
      v128.store(s1, b3, 48);
    }
  }
  return d;
}

/** Elements from `d` on. */
function rest(
  queries: i32, sums: usize, row: usize, weights: usize, values: usize, count: i32, size: i32, d: i32,
): void {
  if (d == size) return;
  for (let query = 0; query < queries; query++) {
    let i = d;
    for (; i + 4 <= size; i += 4) {
      const at = sums + (<usize>i << 2);
      let sum = v128.load(at);
      for (let k = 0; k < count; k++) {
        const value = values + <usize>k * row + (<usize>i << 2);
        sum = madd(v128.load32_splat(weights + (<usize>k << 2)), v128.load(value), sum);
      }
      v128.store(at, sum);
    }
    for (; i < size; i++) {
      const at = sums + (<usize>i << 2);
      let sum = load<f32>(at);
      for (let k = 0; k < count; k++) {
        sum += load<f32>(weights + (<usize>k << 2)) * load<f32>(values + <usize>k * row + (<usize>i << 2));
      }
      store<f32>(at, sum);
    }
    sums += row;
    weights += WEIGHTS;
  }
}
