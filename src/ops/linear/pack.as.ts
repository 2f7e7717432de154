// Repacking of canonical codes into the kernels' tiles, once at load, and float to half.

/** Rows of a canonical matrix, `bits` <= 4 each, little-endian, to tiles of 16 rows x 8 columns of nibbles. */
export function packNibbles(codes: usize, to: usize, rows: i32, columns: i32, bits: i32, padded: i32): void {
  const rowBytes = <usize>((columns * bits + 7) >> 3);
  const mask = (1 << bits) - 1;
  for (let row = 0; row < rows; row++) {
    const source = codes + <usize>row * rowBytes;
    const target = to + <usize>(row >> 4) * padded * 8 + ((<usize>(row & 15)) << 2);
    for (let i = 0; i < columns; i++) {
      const bit = i * bits;
      const word = <i32>load<u16>(source + (bit >> 3));
      const code = (word >> (bit & 7)) & mask;
      const at = target + <usize>(i >> 3) * 64 + (i & 3);
      store<u8>(at, i & 4 ? load<u8>(at) | (code << 4) : code);
    }
  }
}

/** Rows of bytes to tiles of 16 rows x 4 columns. */
export function packBytes(codes: usize, to: usize, rows: i32, columns: i32, padded: i32): void {
  for (let row = 0; row < rows; row++) {
    const source = codes + <usize>row * columns;
    const target = to + <usize>(row >> 4) * padded * 16 + ((<usize>(row & 15)) << 2);
    for (let i = 0; i < columns; i++) {
      store<u8>(target + <usize>(i >> 2) * 64 + (i & 3), load<u8>(source + i));
    }
  }
}

/** `count` floats to halfs, ties to even, overflow to infinity. */
export function narrowToHalf(from: usize, to: usize, count: i32): void {
  const all = count & ~7;
  for (let i = 0; i < all; i += 8) {
    const at = from + (<usize>i << 2);
    v128.store(to + (<usize>i << 1), i16x8.narrow_i32x4_u(halfs(v128.load(at)), halfs(v128.load(at, 16))));
  }
  for (let i = all; i < count; i++) store<u16>(to + (<usize>i << 1), half(load<u32>(from + (<usize>i << 2))));
}

/** As {@link half}, four at a time. */
// @ts-ignore: decorator
@inline
function halfs(bits: v128): v128 {
  const magnitude = v128.and(bits, i32x4.splat(0x7fffffff));
  const odd = v128.and(i32x4.shr_u(magnitude, 13), i32x4.splat(1));
  const rounded = i32x4.shr_u(i32x4.add(i32x4.add(magnitude, i32x4.splat(0xfff - 0x38000000)), odd), 13);
  const small = i32x4.sub(f32x4.add(magnitude, f32x4.splat(0.5)), i32x4.splat(0x3f000000));
  const nan = i32x4.gt_s(magnitude, i32x4.splat(0x7f800000));
  const large = v128.or(i32x4.splat(0x7c00), v128.and(nan, i32x4.splat(0x200)));
  const finite = v128.bitselect(rounded, small, i32x4.gt_s(magnitude, i32x4.splat(0x387fffff)));
  const result = v128.bitselect(large, finite, i32x4.gt_s(magnitude, i32x4.splat(0x477fffff)));
  return v128.or(result, v128.and(i32x4.shr_u(bits, 16), i32x4.splat(0x8000)));
}

function half(bits: u32): u16 {
  const sign = (bits >> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x47800000) return <u16>(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
  if (magnitude >= 0x38800000) {
    const rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return <u16>(sign | ((rounded - 0x38000000) >> 13));
  }
  // Subnormal halfs: adding 0.5 leaves the rounded value in the low bits of the sum.
  const sum = reinterpret<u32>(reinterpret<f32>(magnitude) + 0.5);
  return <u16>(sign | (sum - 0x3f000000));
}
