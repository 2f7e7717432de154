// Products of 4-bit codes with int8 activations, tiles of 16 rows; tileProducts.as.ts says why the batch never matters.

import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";
import { GROUP } from "./quantize.as";
import { dot, swizzle } from "./simd.as";
import { NIBBLE_MASK } from "./tiles.as";
import { addTokens, storeSums, storeTile } from "./tileProducts.as";

/** args: q, scales, sums, weights, rowScales, codebook, out, tokens, rows, columns, padded, scratch, scratch bytes per thread */
export function linearNibbleInt8(args: usize, t: i32, n: i32): void {
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
  const scratch = <usize>load<u32>(args, 44) + <usize>t * load<u32>(args, 48);

  const groups = (padded + GROUP - 1) / GROUP;
  const tileBytes = <usize>padded * 8;
  const end = share(rows, t + 1, n, 16);
  for (let row = share(rows, t, n, 16); row < end; row += 16) {
    const w = weights + <usize>(row >> 4) * tileBytes;
    const target = out + (<usize>row << 2);
    const tileScales = rowScales + (<usize>row << 2);
    if (tokens == 1) {
      nibbleTile(w, q, scales, sums, codebook, padded, target, tileScales, end - row);
      continue;
    }
    const decoded = scratch + (<usize>tokens << 6);
    memory.fill(scratch, 0, <usize>tokens << 6);
    for (let g = 0; g < groups; g++) {
      const columns = min(GROUP, padded - g * GROUP);
      decodeNibbles(w + <usize>(g * GROUP) * 8, decoded, columns >> 3, codebook);
      const at = <usize>g << 2;
      addTokens(
        decoded, q + g * GROUP, padded, columns, scales + at, sums + at, groups, tokens, true, 1, 64, scratch,
      );
    }
    storeTile(scratch, target, tokens, <usize>rows << 2, tileScales, end - row);
  }
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

/** Decodes `chunks` x 64 bytes of a nibble tile: 128 bytes each, four columns of all 16 rows, then the next four. */
function decodeNibbles(w: usize, to: usize, chunks: i32, codebook: v128): void {
  const mask = v128.load(NIBBLE_MASK);
  for (let c = 0; c < chunks; c++) {
    for (let v: usize = 0; v < 64; v += 16) {
      const codes = v128.load(w + v);
      v128.store(to + v, swizzle(codebook, v128.and(codes, mask)));
      v128.store(to + v, swizzle(codebook, v128.and(i16x8.shr_u(codes, 4), mask)), 64);
    }
    w += 64;
    to += 128;
  }
}
