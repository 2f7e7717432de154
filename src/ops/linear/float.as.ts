// Products with float weights, row-major [rows, columns]. Every output is one vector accumulator
// over the columns, whatever the number of tokens: its summation order never depends on the batch.

import { HALF_MASK, HALF_SCALE, half4, madd, sumLanes } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

// @ts-ignore: decorator
@inline
function weight4<H>(w: usize, i: i32, mask: v128, scale: v128): v128 {
  if (isInteger<H>()) return half4(w + (<usize>i << 1), mask, scale);
  return v128.load(w + (<usize>i << 2));
}

// @ts-ignore: decorator
@inline
function finish<H>(acc: v128, x: usize, w: usize, from: i32, columns: i32): f32 {
  let sum = sumLanes(acc);
  for (let i = from; i < columns; i++) {
    const value = isInteger<H>() ? halfAt(w + (<usize>i << 1)) : load<f32>(w + (<usize>i << 2));
    sum += load<f32>(x + (<usize>i << 2)) * value;
  }
  return sum;
}

function halfAt(p: usize): f32 {
  const h = <u32>load<u16>(p);
  const magnitude = reinterpret<f32>((h & 0x7fff) << 13) * reinterpret<f32>(0x77800000);
  return h & 0x8000 ? -magnitude : magnitude;
}

/** One token by `count` <= 4 rows. `H` is u16 for halfs, f32 for floats. */
function oneByFour<H>(x: usize, w: usize, out: usize, columns: i32, count: i32): void {
  const stride = <usize>columns << (isInteger<H>() ? 1 : 2);
  const w1 = w + (count > 1 ? stride : 0);
  const w2 = w + (count > 2 ? stride * 2 : 0);
  const w3 = w + (count > 3 ? stride * 3 : 0);
  const mask = v128.load(HALF_MASK);
  const scale = v128.load(HALF_SCALE);
  let a0 = f32x4.splat(0);
  let a1 = a0;
  let a2 = a0;
  let a3 = a0;
  let i = 0;
  for (; i + 4 <= columns; i += 4) {
    const v = v128.load(x + (<usize>i << 2));
    a0 = madd(v, weight4<H>(w, i, mask, scale), a0);
    a1 = madd(v, weight4<H>(w1, i, mask, scale), a1);
    a2 = madd(v, weight4<H>(w2, i, mask, scale), a2);
    a3 = madd(v, weight4<H>(w3, i, mask, scale), a3);
  }
  store<f32>(out, finish<H>(a0, x, w, i, columns));
  if (count > 1) store<f32>(out, finish<H>(a1, x, w1, i, columns), 4);
  if (count > 2) store<f32>(out, finish<H>(a2, x, w2, i, columns), 8);
  if (count > 3) store<f32>(out, finish<H>(a3, x, w3, i, columns), 12);
}

/** Four tokens by three rows of floats. */
function fourByThree(x: usize, w: usize, out: usize, columns: i32, outStride: usize): void {
  const stride = <usize>columns << 2;
  const x1 = x + stride;
  const x2 = x1 + stride;
  const x3 = x2 + stride;
  const w1 = w + stride;
  const w2 = w1 + stride;
  let a00 = f32x4.splat(0);
  let a01 = a00, a02 = a00, a10 = a00, a11 = a00, a12 = a00;
  let a20 = a00, a21 = a00, a22 = a00, a30 = a00, a31 = a00, a32 = a00;
  let i = 0;
  for (; i + 4 <= columns; i += 4) {
    const at = <usize>i << 2;
    const b0 = v128.load(w + at);
    const b1 = v128.load(w1 + at);
    const b2 = v128.load(w2 + at);
    let v = v128.load(x + at);
    a00 = madd(v, b0, a00);
    a01 = madd(v, b1, a01);
    a02 = madd(v, b2, a02);
    v = v128.load(x1 + at);
    a10 = madd(v, b0, a10);
    a11 = madd(v, b1, a11);
    a12 = madd(v, b2, a12);
    v = v128.load(x2 + at);
    a20 = madd(v, b0, a20);
    a21 = madd(v, b1, a21);
    a22 = madd(v, b2, a22);
    v = v128.load(x3 + at);
    a30 = madd(v, b0, a30);
    a31 = madd(v, b1, a31);
    a32 = madd(v, b2, a32);
  }
  const out1 = out + outStride;
  const out2 = out1 + outStride;
  const out3 = out2 + outStride;
  store<f32>(out, finish<f32>(a00, x, w, i, columns));
  store<f32>(out, finish<f32>(a01, x, w1, i, columns), 4);
  store<f32>(out, finish<f32>(a02, x, w2, i, columns), 8);
  store<f32>(out1, finish<f32>(a10, x1, w, i, columns));
  store<f32>(out1, finish<f32>(a11, x1, w1, i, columns), 4);
  store<f32>(out1, finish<f32>(a12, x1, w2, i, columns), 8);
  store<f32>(out2, finish<f32>(a20, x2, w, i, columns));
  store<f32>(out2, finish<f32>(a21, x2, w1, i, columns), 4);
  store<f32>(out2, finish<f32>(a22, x2, w2, i, columns), 8);
  store<f32>(out3, finish<f32>(a30, x3, w, i, columns));
  store<f32>(out3, finish<f32>(a31, x3, w1, i, columns), 4);
  store<f32>(out3, finish<f32>(a32, x3, w2, i, columns), 8);
}

/** All tokens by `count` float rows that lie one after another; `out` points at the first row's output. */
export function floatRows(x: usize, w: usize, out: usize, tokens: i32, count: i32, columns: i32, outStride: usize): void {
  const xStride = <usize>columns << 2;
  let token = 0;
  for (; token + 4 <= tokens; token += 4) {
    const tx = x + <usize>token * xStride;
    const to = out + <usize>token * outStride;
    let row = 0;
    for (; row + 3 <= count; row += 3) {
      fourByThree(tx, w + <usize>row * xStride, to + (<usize>row << 2), columns, outStride);
    }
    if (row < count) {
      for (let k = 0; k < 4; k++) {
        oneByFour<f32>(
          tx + <usize>k * xStride, w + <usize>row * xStride,
          to + <usize>k * outStride + (<usize>row << 2), columns, count - row,
        );
      }
    }
  }
  for (; token < tokens; token++) {
    for (let row = 0; row < count; row += 4) {
      oneByFour<f32>(
        x + <usize>token * xStride, w + <usize>row * xStride,
        out + <usize>token * outStride + (<usize>row << 2), columns, min(4, count - row),
      );
    }
  }
}

/** args: x, weights, out, tokens, rows, columns */
export function linearF32(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const weights = <usize>load<u32>(args, 4);
  const out = <usize>load<u32>(args, 8);
  const tokens = load<i32>(args, 12);
  const rows = load<i32>(args, 16);
  const columns = load<i32>(args, 20);
  const end = share(rows, t + 1, n, 12);
  for (let row = share(rows, t, n, 12); row < end; row += 12) {
    floatRows(
      x, weights + ((<usize>row * columns) << 2), out + (<usize>row << 2),
      tokens, min(12, end - row), columns, <usize>rows << 2,
    );
  }
}

/** args: x, weights, out, tokens, rows, columns, scratch, scratch bytes per thread */
export function linearF16(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const weights = <usize>load<u32>(args, 4);
  const out = <usize>load<u32>(args, 8);
  const tokens = load<i32>(args, 12);
  const rows = load<i32>(args, 16);
  const columns = load<i32>(args, 20);
  const scratch = <usize>load<u32>(args, 24) + <usize>t * load<u32>(args, 28);
  const end = share(rows, t + 1, n, 12);
  for (let row = share(rows, t, n, 12); row < end; row += 12) {
    const count = min(12, end - row);
    const w = weights + ((<usize>row * columns) << 1);
    if (tokens == 1) {
      for (let k = 0; k < count; k += 4) {
        oneByFour<u16>(x, w + ((<usize>k * columns) << 1), out + (<usize>(row + k) << 2), columns, min(4, count - k));
      }
      continue;
    }
    widen(w, scratch, count * columns);
    floatRows(x, scratch, out + (<usize>row << 2), tokens, count, columns, <usize>rows << 2);
  }
}

/** `count` halfs to floats. */
export function widen(from: usize, to: usize, count: i32): void {
  const mask = v128.load(HALF_MASK);
  const scale = v128.load(HALF_SCALE);
  let i = 0;
  for (; i + 4 <= count; i += 4) v128.store(to + (<usize>i << 2), half4(from + (<usize>i << 1), mask, scale));
  for (; i < count; i++) store<f32>(to + (<usize>i << 2), halfAt(from + (<usize>i << 1)));
}
