/**
 * Blocks of 32 weights with a float16 scale (and, for `_1`, a float16 minimum).
 * Byte i holds the low bits of weight i in its low nibble, of weight i + 16 in its high nibble.
 *
 * @module
 */
import { type Dequantize, halfTable } from "./dequantize.ts";

export const dequantizeQ4_0: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 18, o += 32) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let i = 0; i < 16; i++) {
      const q = bytes[p + 2 + i];
      out[o + i] = d * ((q & 15) - 8);
      out[o + 16 + i] = d * ((q >> 4) - 8);
    }
  }
};

export const dequantizeQ4_1: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 20, o += 32) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    const m = half[bytes[p + 2] | (bytes[p + 3] << 8)];
    for (let i = 0; i < 16; i++) {
      const q = bytes[p + 4 + i];
      out[o + i] = d * (q & 15) + m;
      out[o + 16 + i] = d * (q >> 4) + m;
    }
  }
};

export const dequantizeQ5_0: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 22, o += 32) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    const low = bytes[p + 2] | (bytes[p + 3] << 8);
    const high = bytes[p + 4] | (bytes[p + 5] << 8);
    for (let i = 0; i < 16; i++) {
      const q = bytes[p + 6 + i];
      out[o + i] = d * (((q & 15) | (((low >> i) & 1) << 4)) - 16);
      out[o + 16 + i] = d * (((q >> 4) | (((high >> i) & 1) << 4)) - 16);
    }
  }
};

export const dequantizeQ5_1: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 24, o += 32) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    const m = half[bytes[p + 2] | (bytes[p + 3] << 8)];
    const low = bytes[p + 4] | (bytes[p + 5] << 8);
    const high = bytes[p + 6] | (bytes[p + 7] << 8);
    for (let i = 0; i < 16; i++) {
      const q = bytes[p + 8 + i];
      out[o + i] = d * ((q & 15) | (((low >> i) & 1) << 4)) + m;
      out[o + 16 + i] = d * ((q >> 4) | (((high >> i) & 1) << 4)) + m;
    }
  }
};

export const dequantizeQ8_0: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 34, o += 32) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let i = 0; i < 32; i++) out[o + i] = d * ((bytes[p + 2 + i] << 24) >> 24);
  }
};
