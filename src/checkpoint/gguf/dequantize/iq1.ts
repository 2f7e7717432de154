/**
 * Under 2 bits: eight weights at once are a ternary point of an 11-bit index, shifted by +-1/8.
 *
 * @module
 */
import { type Dequantize, halfTable } from "./dequantize.ts";
import { gridIQ1 } from "./grids.ts";

/** d; 32 low point bytes; per 32 weights a word of four 3-bit high parts, a 3-bit scale, the shift's sign. */
export const dequantizeIQ1_S: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ1();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 50) {
    const d = half[bytes[p] | (bytes[p + 1] << 8)];
    for (let part = 0; part < 32; part++, o += 8) {
      const at = p + 34 + 2 * (part >> 2);
      const word = bytes[at] | (bytes[at + 1] << 8);
      const scale = d * (2 * ((word >> 12) & 7) + 1);
      const delta = word & 0x8000 ? -0.125 : 0.125;
      const point = 8 * (bytes[p + 2 + part] | (((word >> (3 * (part & 3))) & 7) << 8));
      for (let i = 0; i < 8; i++) out[o + i] = scale * (grid[point + i] + delta);
    }
  }
};

/**
 * 32 low point bytes; 32 nibbles of three high point bits and the shift's sign; four words of four
 * 3-bit scales (16 weights each), whose top nibbles together are the float16 d.
 */
export const dequantizeIQ1_M: Dequantize = (bytes, from, out, to, blocks) => {
  const half = halfTable();
  const grid = gridIQ1();
  for (let block = 0, p = from, o = to; block < blocks; block++, p += 56) {
    const scales = p + 48;
    const d =
      half[
        (bytes[scales + 1] >> 4) |
          (bytes[scales + 3] & 0xf0) |
          ((bytes[scales + 5] & 0xf0) << 4) |
          ((bytes[scales + 7] & 0xf0) << 8)
      ];
    for (let part = 0; part < 32; part++, o += 8) {
      const pair = part >> 1;
      const at = scales + 2 * (pair >> 2);
      const word = bytes[at] | (bytes[at + 1] << 8);
      const scale = d * (2 * ((word >> (3 * (pair & 3))) & 7) + 1);
      const nibble = bytes[p + 32 + pair] >> ((part & 1) * 4);
      const delta = nibble & 8 ? -0.125 : 0.125;
      const point = 8 * (bytes[p + part] | ((nibble & 7) << 8));
      for (let i = 0; i < 8; i++) out[o + i] = scale * (grid[point + i] + delta);
    }
  }
};
