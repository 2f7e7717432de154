/**
 * About 2 bits: eight weights at once are a lattice point times signs, 256 weights a float16 scale.
 *
 * @module
 */
import { type Dequantize, halfTable } from "./dequantize.ts";
import { byteSigns, evenSigns, gridIQ2_S, gridIQ2_XS, gridIQ2_XXS } from "./grids.ts";

/** d; per 32 weights four point bytes, then four 7-bit sign codes under a 4-bit scale. */
export const dequantizeIQ2_XXS: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ2_XXS();
  const signs = evenSigns();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 66) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let sub = 0; sub < 8; sub++) {
      const at = p + 2 + 8 * sub;
      const word = bytes[at + 4] | (bytes[at + 5] << 8) | (bytes[at + 6] << 16) | (bytes[at + 7] << 24);
      const scale = d * (0.5 + (word >>> 28)) * 0.25;
      for (let part = 0; part < 4; part++, o += 8) {
        const point = 8 * bytes[at + part];
        const sign = 8 * ((word >>> (7 * part)) & 127);
        for (let i = 0; i < 8; i++) out[o + i] = scale * grid[point + i] * signs[sign + i];
      }
    }
  }
};

/** d; 32 words of a 9-bit point and a 7-bit sign code; 16 scale nibbles. */
export const dequantizeIQ2_XS: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ2_XS();
  const signs = evenSigns();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 74) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let part = 0; part < 32; part++, o += 8) {
      const word = bytes[p + 2 + 2 * part] | (bytes[p + 3 + 2 * part] << 8);
      const nibble = (bytes[p + 66 + (part >> 2)] >> ((part & 2) * 2)) & 15;
      const scale = d * (0.5 + nibble) * 0.25;
      const point = 8 * (word & 511);
      const sign = 8 * (word >> 9);
      for (let i = 0; i < 8; i++) out[o + i] = scale * grid[point + i] * signs[sign + i];
    }
  }
};

/** d; 32 low point bytes; 32 sign bytes; 8 bytes of two high point bits each; 16 scale nibbles. */
export const dequantizeIQ2_S: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ2_S();
  const signs = byteSigns();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 82) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let part = 0; part < 32; part++, o += 8) {
      const high = (bytes[p + 66 + (part >> 2)] >> ((part & 3) * 2)) & 3;
      const nibble = (bytes[p + 74 + (part >> 2)] >> ((part & 2) * 2)) & 15;
      const scale = d * (0.5 + nibble) * 0.25;
      const point = 8 * (bytes[p + 2 + part] | (high << 8));
      const sign = 8 * bytes[p + 34 + part];
      for (let i = 0; i < 8; i++) out[o + i] = scale * grid[point + i] * signs[sign + i];
    }
  }
};
