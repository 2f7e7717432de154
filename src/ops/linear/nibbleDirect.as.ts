// Products of 4-bit codes with int8 activations straight from the codes, tiles of 16 rows, tokens in pairs.

import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";
import { GROUP } from "./quantize.as";
import { dot, swizzle } from "./simd.as";
import { addFour, storeSums, storeTile } from "./tileProducts.as";
import { NIBBLE_MASK } from "./tiles.as";

/** args: q, scales, sums, weights, rowScales, codebook, out, tokens, rows, columns, padded, scratch, scratch bytes per thread */
export function linearNibbleDirect(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const scales = <usize>load<u32>(args, 4);
  const sums = <usize>load<u32>(args, 8);
  const weights = <usize>load<u32>(args, 12);
  const rowScales = <usize>load<u32>(args, 16);
  const codebook = v128.load(<usize>load<u32>(args, 20));
  const out = <usize>load<u32>(args, 24);
  const tokens = load<i32>(args, 28);
  const rows = load<i32>(args, 32);
  const padded = load<i32>(args, 40);
  const f = <usize>load<u32>(args, 44) + <usize>t * load<u32>(args, 48);
  const next = <usize>((padded + GROUP - 1) / GROUP) << 2;
  const stride = <usize>rows << 2;
  const end = share(rows, t + 1, n, 16);
  for (let row = share(rows, t, n, 16); row < end; row += 16) {
    const w = weights + <usize>(row >> 4) * padded * 8;
    const tileScales = rowScales + (<usize>row << 2);
    let target = out + (<usize>row << 2);
    for (let token = 0; token < tokens; token += 2) {
      const a = q + <usize>token * padded;
      const at = <usize>token * next;
      if (token + 1 == tokens) nibbleTile(w, a, scales + at, sums + at, codebook, padded, target, tileScales, end - row);
      else {
        nibbleTile2(w, a, padded, scales + at, sums + at, next, codebook, f);
        storeTile(f, target, 2, stride, tileScales, end - row);
      }
      target += 2 * stride;
    }
  }
}

/** Two tokens by one tile: f [2, 16]. The second's activations lie `padded` bytes on, its scales and sums `next`. */
function nibbleTile2(
  w: usize, a: usize, padded: i32, scales: usize, sums: usize, next: usize, codebook: v128, f: usize,
): void {
  memory.fill(f, 0, 128);
  for (let first = 0; first < padded; first += GROUP) {
    const count = min(GROUP, padded - first);
    addNibbles2(
      w, a, a + padded, count, codebook, <f32>load<i32>(sums) * -64, <f32>load<i32>(sums + next) * -64,
      load<f32>(scales), load<f32>(scales + next), f,
    );
    w += <usize>count * 8;
    a += count;
    scales += 4;
    sums += 4;
  }
}

function addNibbles2(
  w: usize, a: usize, b: usize, count: i32, codebook: v128, startA: f32, startB: f32, scaleA: f32, scaleB: f32, f: usize,
): void {
  const mask = v128.load(NIBBLE_MASK);
  let p0 = i32x4.splat(0), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  const stop = w + <usize>count * 8;
  // Low nibbles and high ones in loops of their own: in one, V8 moves the loads ahead and has no registers for the sums.
  let at = w;
  let i: usize = 0;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(codebook, v128.and(v128.load(at), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(codebook, v128.and(v128.load(at, 16), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(codebook, v128.and(v128.load(at, 32), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(codebook, v128.and(v128.load(at, 48), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 8;
  }
  at = w;
  i = 4;
  for (; at < stop; at += 64) {
    const s = v128.load32_splat(a + i);
    const t = v128.load32_splat(b + i);
    let x = swizzle(codebook, v128.and(i16x8.shr_u(v128.load(at), 4), mask));
    p0 = dot(s, x, p0);
    q0 = dot(t, x, q0);
    x = swizzle(codebook, v128.and(i16x8.shr_u(v128.load(at, 16), 4), mask));
    p1 = dot(s, x, p1);
    q1 = dot(t, x, q1);
    x = swizzle(codebook, v128.and(i16x8.shr_u(v128.load(at, 32), 4), mask));
    p2 = dot(s, x, p2);
    q2 = dot(t, x, q2);
    x = swizzle(codebook, v128.and(i16x8.shr_u(v128.load(at, 48), 4), mask));
    p3 = dot(s, x, p3);
    q3 = dot(t, x, q3);
    i += 8;
  }
  addFour(f, p0, p1, p2, p3, startA, scaleA);
  addFour(f + 64, q0, q1, q2, q3, startB, scaleB);
}

/** One token by one tile of 16 rows of 4-bit codes: 64 bytes hold 16 rows x 8 columns, low nibbles the first four. */
function nibbleTile(w: usize, a: usize, scales: usize, sums: usize, codebook: v128, columns: i32, out: usize, rowScales: usize, count: i32): void {
  const mask = v128.load(NIBBLE_MASK);
  let f0 = f32x4.splat(0), f1 = f0, f2 = f0, f3 = f0;
  for (let first = 0; first < columns; first += GROUP) {
    const start = i32x4.splat(load<i32>(sums) * -64);
    let i0 = start, i1 = start, i2 = start, i3 = start;
    // A second set of sums halves the chain of dependent products (integers: the order is free).
    let j0 = i32x4.splat(0), j1 = j0, j2 = j0, j3 = j0;
    const stop = a + min(GROUP, columns - first);
    // Unrolled by hand: V8 does not.
    for (; a + 32 <= stop; a += 32, w += 256) {
      let a0: v128, a1: v128, w0: v128;
      a0 = v128.load32_splat(a, 0);
      a1 = v128.load32_splat(a, 4);
      w0 = v128.load(w, 0);
      i0 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i0);
      j0 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j0);
      w0 = v128.load(w, 16);
      i1 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i1);
      j1 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j1);
      w0 = v128.load(w, 32);
      i2 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i2);
      j2 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j2);
      w0 = v128.load(w, 48);
      i3 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i3);
      j3 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j3);
      a0 = v128.load32_splat(a, 8);
      a1 = v128.load32_splat(a, 12);
      w0 = v128.load(w, 64);
      i0 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i0);
      j0 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j0);
      w0 = v128.load(w, 80);
      i1 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i1);
      j1 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j1);
      w0 = v128.load(w, 96);
      i2 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i2);
      j2 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j2);
      w0 = v128.load(w, 112);
      i3 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i3);
      j3 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j3);
      a0 = v128.load32_splat(a, 16);
      a1 = v128.load32_splat(a, 20);
      w0 = v128.load(w, 128);
      i0 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i0);
      j0 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j0);
      w0 = v128.load(w, 144);
      i1 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i1);
      j1 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j1);
      w0 = v128.load(w, 160);
      i2 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i2);
      j2 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j2);
      w0 = v128.load(w, 176);
      i3 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i3);
      j3 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j3);
      a0 = v128.load32_splat(a, 24);
      a1 = v128.load32_splat(a, 28);
      w0 = v128.load(w, 192);
      i0 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i0);
      j0 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j0);
      w0 = v128.load(w, 208);
      i1 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i1);
      j1 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j1);
      w0 = v128.load(w, 224);
      i2 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i2);
      j2 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j2);
      w0 = v128.load(w, 240);
      i3 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i3);
      j3 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j3);
    }
    for (; a < stop; a += 8, w += 64) {
      let a0: v128, a1: v128, w0: v128;
      a0 = v128.load32_splat(a, 0);
      a1 = v128.load32_splat(a, 4);
      w0 = v128.load(w, 0);
      i0 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i0);
      j0 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j0);
      w0 = v128.load(w, 16);
      i1 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i1);
      j1 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j1);
      w0 = v128.load(w, 32);
      i2 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i2);
      j2 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j2);
      w0 = v128.load(w, 48);
      i3 = dot(a0, swizzle(codebook, v128.and(w0, mask)), i3);
      j3 = dot(a1, swizzle(codebook, v128.and(i16x8.shr_u(w0, 4), mask)), j3);
    }
    const s = v128.load32_splat(scales);
    f0 = madd(f32x4.convert_i32x4_s(i32x4.add(i0, j0)), s, f0);
    f1 = madd(f32x4.convert_i32x4_s(i32x4.add(i1, j1)), s, f1);
    f2 = madd(f32x4.convert_i32x4_s(i32x4.add(i2, j2)), s, f2);
    f3 = madd(f32x4.convert_i32x4_s(i32x4.add(i3, j3)), s, f3);
    scales += 4;
    sums += 4;
  }
  storeSums(out, f0, f1, f2, f3, rowScales, count);
}
