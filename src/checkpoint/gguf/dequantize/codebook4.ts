/**
 * Nibbles that index 16 values: IQ4_NL, IQ4_XS and the OCP microscaling format MXFP4.
 *
 * @module
 */
import { type Dequantize, halfTable, lazy } from "./dequantize.ts";

const iq4Values = lazy(() =>
  Float32Array.of(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113),
);

/** E2M1 values, doubled: the scale is halved in return. */
const e2m1Values = lazy(() => Float32Array.of(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));

export const dequantizeIQ4_NL: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const values = iq4Values();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 18, o += 32) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let i = 0; i < 16; i++) {
      const q = bytes[p + 2 + i];
      out[o + i] = d * values[q & 15];
      out[o + 16 + i] = d * values[q >> 4];
    }
  }
};

/** d, 8 pairs of high scale bits, 8 low scale nibbles, 128 bytes of codes in groups of 16. */
export const dequantizeIQ4_XS: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const values = iq4Values();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 136) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    const highs = bytes[p + 2] | (bytes[p + 3] << 8);
    for (let sub = 0; sub < 8; sub++, o += 32) {
      const low = (bytes[p + 4 + (sub >> 1)] >> ((sub & 1) * 4)) & 15;
      const scale = d * ((low | (((highs >> (2 * sub)) & 3) << 4)) - 32);
      const codes = p + 8 + 16 * sub;
      for (let i = 0; i < 16; i++) {
        const q = bytes[codes + i];
        out[o + i] = scale * values[q & 15];
        out[o + 16 + i] = scale * values[q >> 4];
      }
    }
  }
};

/** One exponent byte (2^(e - 128), subnormal below e = 2) and 16 bytes of codes. */
export const dequantizeMXFP4: Dequantize = (bytes, from, out, to, blocks) => {
  const values = e2m1Values();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 17, o += 32) {
    const d = 2 ** (bytes[p] - 128);
    for (let i = 0; i < 16; i++) {
      const q = bytes[p + 1 + i];
      out[o + i] = d * values[q & 15];
      out[o + 16 + i] = d * values[q >> 4];
    }
  }
};
