// Products of packed integer weights with int8 activations, tiles of 16 rows. Integer sums within a
// group of activations are exact; groups are added in order: the result never depends on the batch.

import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";

/**
 * The low nibble of every byte, in memory: a constant would be folded into the loops, where V8 builds it anew
 * at each use; loaded once it stays in a register (1.5 times the speed).
 */
const NIBBLE_MASK = memory.data<u8>([15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15], 16);

/** Activations that share a scale. */
export const GROUP = 128;

/** c + sums of four products, per 32-bit lane; `w` within 7 bits, so that every ISA agrees. */
// @ts-ignore: decorator
@inline
export function dot(a: v128, w: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i32x4.relaxed_dot_i8x16_i7x16_add_s(a, w, c);
  const low = i32x4.extadd_pairwise_i16x8_s(i16x8.extmul_low_i8x16_s(a, w));
  const high = i32x4.extadd_pairwise_i16x8_s(i16x8.extmul_high_i8x16_s(a, w));
  const even = v128.shuffle<i32>(low, high, 0, 2, 4, 6);
  const odd = v128.shuffle<i32>(low, high, 1, 3, 5, 7);
  return i32x4.add(c, i32x4.add(even, odd));
}

// @ts-ignore: decorator
@inline
function swizzle(table: v128, index: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, index);
  return i8x16.swizzle(table, index);
}

// @ts-ignore: decorator
@inline
function storeRows(out: usize, f: v128, scales: usize, count: i32): void {
  const y = f32x4.mul(f, v128.load(scales));
  if (count >= 4) {
    v128.store(out, y);
    return;
  }
  if (count > 0) store<f32>(out, f32x4.extract_lane(y, 0));
  if (count > 1) store<f32>(out, f32x4.extract_lane(y, 1), 4);
  if (count > 2) store<f32>(out, f32x4.extract_lane(y, 2), 8);
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
  storeRows(out, f0, rowScales, count);
  storeRows(out + 16, f1, rowScales + 16, count - 4);
  storeRows(out + 32, f2, rowScales + 32, count - 8);
  storeRows(out + 48, f3, rowScales + 48, count - 12);
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

/** Adds scale * (start + sum over `quads` x four columns) of two tokens to their 16 float sums. */
function addGroup2(w: usize, a: usize, b: usize, quads: i32, startA: i32, startB: i32, scaleA: f32, scaleB: f32, fa: usize, fb: usize): void {
  let p0 = i32x4.splat(startA), p1 = p0, p2 = p0, p3 = p0;
  let q0 = i32x4.splat(startB), q1 = q0, q2 = q0, q3 = q0;
  for (let k = 0; k < quads; k++) {
    const va = v128.load32_splat(a);
    const vb = v128.load32_splat(b);
    a += 4;
    b += 4;
    let v = v128.load(w);
    p0 = dot(va, v, p0);
    q0 = dot(vb, v, q0);
    v = v128.load(w, 16);
    p1 = dot(va, v, p1);
    q1 = dot(vb, v, q1);
    v = v128.load(w, 32);
    p2 = dot(va, v, p2);
    q2 = dot(vb, v, q2);
    v = v128.load(w, 48);
    p3 = dot(va, v, p3);
    q3 = dot(vb, v, q3);
    w += 64;
  }
  addScaled(fa, p0, p1, p2, p3, f32x4.splat(scaleA));
  addScaled(fb, q0, q1, q2, q3, f32x4.splat(scaleB));
}

// @ts-ignore: decorator
@inline
function addScaled(f: usize, i0: v128, i1: v128, i2: v128, i3: v128, s: v128): void {
  v128.store(f, madd(f32x4.convert_i32x4_s(i0), s, v128.load(f)));
  v128.store(f, madd(f32x4.convert_i32x4_s(i1), s, v128.load(f, 16)), 16);
  v128.store(f, madd(f32x4.convert_i32x4_s(i2), s, v128.load(f, 32)), 32);
  v128.store(f, madd(f32x4.convert_i32x4_s(i3), s, v128.load(f, 48)), 48);
}

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
      addGroups(decoded, q + g * GROUP, padded, columns >> 2, scales, sums, g, groups, tokens, -64, scratch);
    }
    storeTile(scratch, target, tokens, <usize>rows << 2, tileScales, end - row);
  }
}

/** All tokens, in pairs, over one decoded group of one tile. */
function addGroups(
  decoded: usize, q: usize, padded: i32, quads: i32, scales: usize, sums: usize,
  g: i32, groups: i32, tokens: i32, offset: i32, f: usize,
): void {
  for (let token = 0; token < tokens; token += 2) {
    const other = min(token + 1, tokens - 1);
    const at = <usize>(token * groups + g) << 2;
    const otherAt = <usize>(other * groups + g) << 2;
    // The last token of an odd batch is paired with itself, its twin's sums going to a spare place.
    const spare = other == token ? decoded + <usize>quads * 64 : f + (<usize>other << 6);
    addGroup2(
      decoded, q + <usize>token * padded, q + <usize>other * padded, quads,
      load<i32>(sums + at) * offset, load<i32>(sums + otherAt) * offset,
      load<f32>(scales + at), load<f32>(scales + otherAt), f + (<usize>token << 6), spare,
    );
  }
}

export function storeTile(f: usize, out: usize, tokens: i32, outStride: usize, rowScales: usize, count: i32): void {
  for (let token = 0; token < tokens; token++) {
    for (let v = 0; v < 16; v += 4) {
      storeRows(out + (<usize>v << 2), v128.load(f + (<usize>v << 2)), rowScales + (<usize>v << 2), count - v);
    }
    f += 64;
    out += outStride;
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
    const offset = f32x4.splat(<f32>load<i32>(sums) * -127.5);
    f0 = madd(f32x4.add(joinNibbles(i0, h0), offset), s, f0);
    f1 = madd(f32x4.add(joinNibbles(i1, h1), offset), s, f1);
    f2 = madd(f32x4.add(joinNibbles(i2, h2), offset), s, f2);
    f3 = madd(f32x4.add(joinNibbles(i3, h3), offset), s, f3);
    scales += 4;
    sums += 4;
  }
  storeRows(out, f0, rowScales, count);
  storeRows(out + 16, f1, rowScales + 16, count - 4);
  storeRows(out + 32, f2, rowScales + 32, count - 8);
  storeRows(out + 48, f3, rowScales + 48, count - 12);
}

// @ts-ignore: decorator
@inline
function joinNibbles(low: v128, high: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.add(low, i32x4.shl(high, 4)));
}

/** args as for nibbles, without a codebook */
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
    for (let token = 0; token < tokens; token++) {
      const at = <usize>(token * groups) << 2;
      byteTile(
        weights + <usize>(row >> 4) * tileBytes, q + <usize>token * padded, scales + at, sums + at, padded,
        out + (<usize>(token * rows + row) << 2), rowScales + (<usize>row << 2), end - row,
      );
    }
  }
}
