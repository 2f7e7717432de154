/**
 * Super-blocks of 256 weights: sub-blocks of 16 or 32 with integer scales (and minima)
 * under one float16 scale (and one float16 scale of the minima).
 *
 * @module
 */
import { type Dequantize, halfTable } from "./dequantize.ts";

/** 16 scale/minimum nibble pairs, 64 bytes of 2-bit codes, d, dmin. */
export const dequantizeQ2_K: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 84) {
    const d = half[bytes[p + 80] | (bytes[p + 81] << 8)];
    const dmin = half[bytes[p + 82] | (bytes[p + 83] << 8)];
    for (let sub = 0; sub < 16; sub++, o += 16) {
      const scale = d * (bytes[p + sub] & 15);
      const min = dmin * (bytes[p + sub] >> 4);
      const codes = p + 16 + (sub >> 3) * 32 + (sub & 1) * 16;
      const shift = sub & 6;
      for (let i = 0; i < 16; i++) out[o + i] = scale * ((bytes[codes + i] >> shift) & 3) - min;
    }
  }
};

/** 32 bytes of high bits (set: no offset of -4), 64 of 2-bit codes, 12 of 6-bit scales, d. */
export const dequantizeQ3_K: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 110) {
    const d = half[bytes[p + 108] | (bytes[p + 109] << 8)];
    for (let sub = 0; sub < 16; sub++, o += 16) {
      const low = (bytes[p + 96 + (sub & 7)] >> ((sub >> 3) * 4)) & 15;
      const high = (bytes[p + 104 + (sub & 3)] >> ((sub >> 2) * 2)) & 3;
      const scale = d * ((low | (high << 4)) - 32);
      const mask = p + (sub & 1) * 16;
      const codes = p + 32 + (sub >> 3) * 32 + (sub & 1) * 16;
      const bit = sub >> 1;
      const shift = sub & 6;
      for (let i = 0; i < 16; i++) {
        const offset = (~(bytes[mask + i] >> bit) & 1) << 2;
        out[o + i] = scale * (((bytes[codes + i] >> shift) & 3) - offset);
      }
    }
  }
};

/** 6-bit scale `sub` (0..7) of the 12 packed bytes at `p`: two high bits of the last four lie in the first four. */
function scaleOf(bytes: Uint8Array, p: number, sub: number): number {
  return sub < 4 ? bytes[p + sub] & 63 : (bytes[p + sub + 4] & 15) | ((bytes[p + sub - 4] >> 2) & 48);
}

function minOf(bytes: Uint8Array, p: number, sub: number): number {
  return sub < 4 ? bytes[p + sub + 4] & 63 : (bytes[p + sub + 4] >> 4) | ((bytes[p + sub] >> 2) & 48);
}

/** d, dmin, 12 bytes of scales and minima, 128 bytes of nibbles. */
export const dequantizeQ4_K: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 144) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    const dmin = half[bytes[p + 2] | (bytes[p + 3] << 8)];
    for (let pair = 0; pair < 4; pair++, o += 64) {
      const scale0 = d * scaleOf(bytes, p + 4, 2 * pair);
      const scale1 = d * scaleOf(bytes, p + 4, 2 * pair + 1);
      const min0 = dmin * minOf(bytes, p + 4, 2 * pair);
      const min1 = dmin * minOf(bytes, p + 4, 2 * pair + 1);
      const codes = p + 16 + pair * 32;
      for (let i = 0; i < 32; i++) {
        const q = bytes[codes + i];
        out[o + i] = scale0 * (q & 15) - min0;
        out[o + 32 + i] = scale1 * (q >> 4) - min1;
      }
    }
  }
};

/** As Q4_K, with 32 bytes of fifth bits before the nibbles. */
export const dequantizeQ5_K: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 176) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    const dmin = half[bytes[p + 2] | (bytes[p + 3] << 8)];
    for (let pair = 0; pair < 4; pair++, o += 64) {
      const scale0 = d * scaleOf(bytes, p + 4, 2 * pair);
      const scale1 = d * scaleOf(bytes, p + 4, 2 * pair + 1);
      const min0 = dmin * minOf(bytes, p + 4, 2 * pair);
      const min1 = dmin * minOf(bytes, p + 4, 2 * pair + 1);
      const codes = p + 48 + pair * 32;
      for (let i = 0; i < 32; i++) {
        const q = bytes[codes + i];
        const high = bytes[p + 16 + i] >> (2 * pair);
        out[o + i] = scale0 * ((q & 15) | ((high & 1) << 4)) - min0;
        out[o + 32 + i] = scale1 * ((q >> 4) | ((high & 2) << 3)) - min1;
      }
    }
  }
};

/** 128 bytes of low nibbles, 64 of two high bits, 16 signed scales, d. */
export const dequantizeQ6_K: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 210) {
    const d = half[bytes[p + 208] | (bytes[p + 209] << 8)];
    for (let sub = 0; sub < 16; sub++, o += 16) {
      const scale = d * ((bytes[p + 192 + sub] << 24) >> 24);
      const low = p + (sub >> 3) * 64 + (sub & 3) * 16;
      const high = p + 128 + (sub >> 3) * 32 + (sub & 1) * 16;
      const nibble = sub & 4;
      const shift = sub & 6;
      for (let i = 0; i < 16; i++) {
        const q = ((bytes[low + i] >> nibble) & 15) | (((bytes[high + i] >> shift) & 3) << 4);
        out[o + i] = scale * (q - 32);
      }
    }
  }
};
