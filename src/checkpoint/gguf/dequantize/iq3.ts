/**
 * About 3 bits: four weights at once are a lattice point times signs, 256 weights a float16 scale.
 *
 * @module
 */
import { type Dequantize, halfTable } from "./dequantize.ts";
import { byteSigns, evenSigns, gridIQ3_S, gridIQ3_XXS } from "./grids.ts";

/** d; 64 point bytes; per 32 weights four 7-bit sign codes under a 4-bit scale. */
export const dequantizeIQ3_XXS: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ3_XXS();
  const signs = evenSigns();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 98) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let sub = 0; sub < 8; sub++) {
      const at = p + 66 + 4 * sub;
      const word = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      const scale = d * (0.5 + (word >>> 28)) * 0.5;
      for (let part = 0; part < 4; part++, o += 8) {
        const point0 = 4 * bytes[p + 2 + 8 * sub + 2 * part];
        const point1 = 4 * bytes[p + 3 + 8 * sub + 2 * part];
        const sign = 8 * ((word >>> (7 * part)) & 127);
        for (let i = 0; i < 4; i++) {
          out[o + i] = scale * grid[point0 + i] * signs[sign + i];
          out[o + 4 + i] = scale * grid[point1 + i] * signs[sign + 4 + i];
        }
      }
    }
  }
};

/** d; 64 low point bytes; 64 high point bits; 32 sign bytes; 8 scale nibbles. */
export const dequantizeIQ3_S: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ3_S();
  const signs = byteSigns();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 110) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let part = 0; part < 32; part++, o += 8) {
      const sub = part >> 2;
      const scale = d * (1 + 2 * ((bytes[p + 106 + (sub >> 1)] >> ((sub & 1) * 4)) & 15));
      const high = bytes[p + 66 + sub] >> ((part & 3) * 2);
      const point0 = 4 * (bytes[p + 2 + 2 * part] | ((high & 1) << 8));
      const point1 = 4 * (bytes[p + 3 + 2 * part] | ((high & 2) << 7));
      const sign = 8 * bytes[p + 74 + part];
      for (let i = 0; i < 4; i++) {
        out[o + i] = scale * grid[point0 + i] * signs[sign + i];
        out[o + 4 + i] = scale * grid[point1 + i] * signs[sign + 4 + i];
      }
    }
  }
};
