/**
 * Ternary weights {-1, 0, 1} times one float16 scale a block of 256.
 *
 * @module
 */
import { type Dequantize, halfTable, lazy } from "./dequantize.ts";

/** `TRITS[5 * byte + n]`: the n-th base-3 digit of a byte, as fixed point (byte * 3^n mod 256) * 3 / 256, minus 1. */
const tritTable = lazy(() => {
  const table = new Int8Array(256 * 5);
  for (let byte = 0; byte < 256; byte++) {
    for (let n = 0, power = 1; n < 5; n++, power *= 3)
      table[5 * byte + n] = ((((byte * power) & 255) * 3) >> 8) - 1;
  }
  return table;
});

/** 32 bytes of five digits 32 apart, 16 of five digits 16 apart, 4 of four digits 4 apart, d. */
export const dequantizeTQ1_0: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const trits = tritTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 54, o += 256) {
    const d = half[bytes[p + 52] | (bytes[p + 53] << 8)];
    for (let n = 0; n < 5; n++) {
      for (let i = 0; i < 32; i++) out[o + 32 * n + i] = d * trits[5 * bytes[p + i] + n];
      for (let i = 0; i < 16; i++) out[o + 160 + 16 * n + i] = d * trits[5 * bytes[p + 32 + i] + n];
    }
    for (let n = 0; n < 4; n++) {
      for (let i = 0; i < 4; i++) out[o + 240 + 4 * n + i] = d * trits[5 * bytes[p + 48 + i] + n];
    }
  }
};

/** 64 bytes of 2-bit codes, four 32 apart in a byte, d. */
export const dequantizeTQ2_0: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 66) {
    const d = half[bytes[p + 64] | (bytes[p + 65] << 8)];
    for (let group = 0; group < 8; group++, o += 32) {
      const codes = p + (group >> 2) * 32;
      const shift = (group & 3) * 2;
      for (let i = 0; i < 32; i++) out[o + i] = d * (((bytes[codes + i] >> shift) & 3) - 1);
    }
  }
};
