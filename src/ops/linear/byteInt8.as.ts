// Products of bytes with int8 activations, tiles of 16 rows, a nibble at a time: relaxed products take 7 bits.

import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";
import { GROUP } from "./quantize.as";
import { dot } from "./simd.as";
import { BYTE_OFFSET, NIBBLE_MASK } from "./tiles.as";
import { storeRows, storeSums } from "./tileProducts.as";

/** args: q, scales, sums, weights, rowScales, 0, out, tokens, rows, columns, padded */
export function linearByteInt8(args: usize, t: i32, n: i32): void {
  const q = <usize>load<u32>(args);
  const scales = <usize>load<u32>(args, 4);
  const sums = <usize>load<u32>(args, 8);
  const weights = <usize>load<u32>(args, 12);
  const rowScales = <usize>load<u32>(args, 16);
  const out = <usize>load<u32>(args, 24);
  const tokens = load<i32>(args, 28);
  const rows = load<i32>(args, 32);
  const padded = load<i32>(args, 40);
  const groups = (padded + GROUP - 1) / GROUP;
  const tileBytes = <usize>padded * 16;
  const end = share(rows, t + 1, n, 16);
  for (let row = share(rows, t, n, 16); row < end; row += 16) {
    const w = weights + <usize>(row >> 4) * tileBytes;
    const tileScales = rowScales + (<usize>row << 2);
    for (let token = 0; token < tokens; token += 2) {
      const at = <usize>(token * groups) << 2;
      const a = q + <usize>token * padded;
      const to = out + (<usize>(token * rows + row) << 2);
      if (token + 1 == tokens) byteTile(w, a, scales + at, sums + at, padded, to, tileScales, end - row);
      else {
        // Eight rows at a time: two tokens' sums of two nibbles leave room for no more.
        for (let half: usize = 0; half < 64; half += 32) {
          twoTokens(
            w + half, a, scales + at, sums + at, groups, padded, to + half, <usize>rows << 2, tileScales + half,
            end - row - <i32>(half >> 2),
          );
        }
      }
    }
  }
}

/** One token by one tile of 16 rows of bytes, each standing for byte - 127.5: 64 bytes hold 16 rows x 4 columns. */
function byteTile(w: usize, a: usize, scales: usize, sums: usize, columns: i32, out: usize, rowScales: usize, count: i32): void {
  const mask = v128.load(NIBBLE_MASK);
  let f0 = f32x4.splat(0), f1 = f0, f2 = f0, f3 = f0;
  for (let first = 0; first < columns; first += GROUP) {
    let i0 = i32x4.splat(0), i1 = i0, i2 = i0, i3 = i0;
    let h0 = i0, h1 = i0, h2 = i0, h3 = i0;
    const stop = a + min(GROUP, columns - first);
    for (; a + 16 <= stop; a += 16, w += 256) {
      let v: v128, w0: v128;
      v = v128.load32_splat(a, 0);
      w0 = v128.load(w, 0);
      i0 = dot(v, v128.and(w0, mask), i0);
      h0 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h0);
      w0 = v128.load(w, 16);
      i1 = dot(v, v128.and(w0, mask), i1);
      h1 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h1);
      w0 = v128.load(w, 32);
      i2 = dot(v, v128.and(w0, mask), i2);
      h2 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h2);
      w0 = v128.load(w, 48);
      i3 = dot(v, v128.and(w0, mask), i3);
      h3 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h3);
      v = v128.load32_splat(a, 4);
      w0 = v128.load(w, 64);
      i0 = dot(v, v128.and(w0, mask), i0);
      h0 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h0);
      w0 = v128.load(w, 80);
      i1 = dot(v, v128.and(w0, mask), i1);
      h1 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h1);
      w0 = v128.load(w, 96);
      i2 = dot(v, v128.and(w0, mask), i2);
      h2 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h2);
      w0 = v128.load(w, 112);
      i3 = dot(v, v128.and(w0, mask), i3);
      h3 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h3);
      v = v128.load32_splat(a, 8);
      w0 = v128.load(w, 128);
      i0 = dot(v, v128.and(w0, mask), i0);
      h0 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h0);
      w0 = v128.load(w, 144);
      i1 = dot(v, v128.and(w0, mask), i1);
      h1 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h1);
      w0 = v128.load(w, 160);
      i2 = dot(v, v128.and(w0, mask), i2);
      h2 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h2);
      w0 = v128.load(w, 176);
      i3 = dot(v, v128.and(w0, mask), i3);
      h3 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h3);
      v = v128.load32_splat(a, 12);
      w0 = v128.load(w, 192);
      i0 = dot(v, v128.and(w0, mask), i0);
      h0 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h0);
      w0 = v128.load(w, 208);
      i1 = dot(v, v128.and(w0, mask), i1);
      h1 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h1);
      w0 = v128.load(w, 224);
      i2 = dot(v, v128.and(w0, mask), i2);
      h2 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h2);
      w0 = v128.load(w, 240);
      i3 = dot(v, v128.and(w0, mask), i3);
      h3 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h3);
    }
    for (; a < stop; a += 4, w += 64) {
      let v: v128, w0: v128;
      v = v128.load32_splat(a, 0);
      w0 = v128.load(w, 0);
      i0 = dot(v, v128.and(w0, mask), i0);
      h0 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h0);
      w0 = v128.load(w, 16);
      i1 = dot(v, v128.and(w0, mask), i1);
      h1 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h1);
      w0 = v128.load(w, 32);
      i2 = dot(v, v128.and(w0, mask), i2);
      h2 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h2);
      w0 = v128.load(w, 48);
      i3 = dot(v, v128.and(w0, mask), i3);
      h3 = dot(v, v128.and(i16x8.shr_u(w0, 4), mask), h3);
    }
    const s = v128.load32_splat(scales);
    // Exact: the sums stay below 2^23.
    const offset = f32x4.splat(<f32>load<i32>(sums) * -BYTE_OFFSET);
    f0 = madd(f32x4.add(joinNibbles(i0, h0), offset), s, f0);
    f1 = madd(f32x4.add(joinNibbles(i1, h1), offset), s, f1);
    f2 = madd(f32x4.add(joinNibbles(i2, h2), offset), s, f2);
    f3 = madd(f32x4.add(joinNibbles(i3, h3), offset), s, f3);
    scales += 4;
    sums += 4;
  }
  storeSums(out, f0, f1, f2, f3, rowScales, count);
}

/** Two tokens by eight rows of a tile; the second's activations, scales, sums and outputs follow the first's. */
function twoTokens(
  w: usize, a: usize, scales: usize, sums: usize, groups: i32, columns: i32, out: usize, outStride: usize,
  rowScales: usize, count: i32,
): void {
  const mask = v128.load(NIBBLE_MASK);
  const next = <usize>groups << 2;
  let f0 = f32x4.splat(0), f1 = f0, g0 = f0, g1 = f0;
  for (let first = 0; first < columns; first += GROUP) {
    let i0 = i32x4.splat(0), i1 = i0, h0 = i0, h1 = i0, j0 = i0, j1 = i0, k0 = i0, k1 = i0;
    for (const stop = a + min(GROUP, columns - first); a < stop; a += 4, w += 64) {
      const s = v128.load32_splat(a);
      const t = v128.load32_splat(a + columns);
      let v = v128.load(w);
      let nibbles = v128.and(v, mask);
      i0 = dot(s, nibbles, i0);
      j0 = dot(t, nibbles, j0);
      nibbles = v128.and(i16x8.shr_u(v, 4), mask);
      h0 = dot(s, nibbles, h0);
      k0 = dot(t, nibbles, k0);
      v = v128.load(w, 16);
      nibbles = v128.and(v, mask);
      i1 = dot(s, nibbles, i1);
      j1 = dot(t, nibbles, j1);
      nibbles = v128.and(i16x8.shr_u(v, 4), mask);
      h1 = dot(s, nibbles, h1);
      k1 = dot(t, nibbles, k1);
    }
    let scale = v128.load32_splat(scales);
    let offset = f32x4.splat(<f32>load<i32>(sums) * -BYTE_OFFSET);
    f0 = madd(f32x4.add(joinNibbles(i0, h0), offset), scale, f0);
    f1 = madd(f32x4.add(joinNibbles(i1, h1), offset), scale, f1);
    scale = v128.load32_splat(scales + next);
    offset = f32x4.splat(<f32>load<i32>(sums + next) * -BYTE_OFFSET);
    g0 = madd(f32x4.add(joinNibbles(j0, k0), offset), scale, g0);
    g1 = madd(f32x4.add(joinNibbles(j1, k1), offset), scale, g1);
    scales += 4;
    sums += 4;
  }
  storeRows(out, f0, rowScales, count);
  storeRows(out + 16, f1, rowScales + 16, count - 4);
  storeRows(out + outStride, g0, rowScales, count);
  storeRows(out + outStride + 16, g1, rowScales + 16, count - 4);
}

// @ts-ignore: decorator
@inline
function joinNibbles(low: v128, high: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.add(low, i32x4.shl(high, 4)));
}
