// How weights are packed in memory, and how one row is read back as floats.

import { swizzle } from "./simd.as";

export const FLOAT: i32 = 0;
export const HALF: i32 = 1;
/** 16 rows x 8 columns in 64 bytes, two 4-bit codes a byte. */
export const NIBBLE_TILES: i32 = 2;
/** 16 rows x 4 columns in 64 bytes, each standing for byte - {@link BYTE_OFFSET}. */
export const BYTE_TILES: i32 = 3;
/** 16 rows x 16 columns of any other code; see fieldTiles.as.ts. */
export const FIELD_TILES: i32 = 4;

export const BYTE_OFFSET: f32 = 127.5;

/**
 * The low nibble of every byte, in memory: a constant would be folded into the loops, where V8 builds it anew
 * at each use; loaded once it stays in a register (1.5 times the speed).
 */
export const NIBBLE_MASK = memory.data<u8>([15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15], 16);

/** One row of a nibble tile, `row` pointing at its first bytes. */
export function readNibbles(row: usize, out: usize, columns: i32, factor: f32, codebook: usize): void {
  const mask = v128.load(NIBBLE_MASK);
  const levels = i8x16.sub(v128.load(codebook), i8x16.splat(64));
  const scale = f32x4.splat(factor);
  let i = 0;
  for (; i + 8 <= columns; i += 8) {
    const codes = v128.load32_zero(row);
    const low = v128.and(codes, mask);
    const high = v128.and(i16x8.shr_u(codes, 4), mask);
    const eight = i16x8.extend_low_i8x16_s(swizzle(levels, v128.shuffle<i32>(low, high, 0, 4, 1, 5)));
    v128.store(out, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(eight)), scale));
    v128.store(out, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(eight)), scale), 16);
    row += 64;
    out += 32;
  }
  for (; i < columns; i++) {
    const byte = load<u8>(row + (i & 3));
    const code = i & 4 ? byte >> 4 : byte & 15;
    store<f32>(out, <f32>(<i32>load<u8>(codebook + code) - 64) * factor);
    out += 4;
  }
}

/** One row of a tile of bytes, `row` pointing at its first four: values (byte - offset) * factor. */
export function readBytes(row: usize, out: usize, columns: i32, factor: f32, offset: f32): void {
  const scale = f32x4.splat(factor);
  const zero = f32x4.splat(offset);
  let i = 0;
  for (; i + 4 <= columns; i += 4) {
    const four = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(row)));
    v128.store(out, f32x4.mul(f32x4.sub(f32x4.convert_i32x4_s(four), zero), scale));
    row += 64;
    out += 16;
  }
  for (; i < columns; i++) {
    store<f32>(out, (<f32>load<u8>(row + (i & 3)) - offset) * factor);
    out += 4;
  }
}
