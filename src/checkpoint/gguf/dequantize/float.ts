import { toFloat32 } from "../../dtype.ts";
import type { Dequantize } from "./dequantize.ts";

export const dequantizeF32: Dequantize = (bytes, from, out, to, blocks) =>
  toFloat32("F32", bytes.subarray(from, from + 4 * blocks), out.subarray(to, to + blocks));

export const dequantizeF16: Dequantize = (bytes, from, out, to, blocks) =>
  toFloat32("F16", bytes.subarray(from, from + 2 * blocks), out.subarray(to, to + blocks));

export const dequantizeBF16: Dequantize = (bytes, from, out, to, blocks) =>
  toFloat32("BF16", bytes.subarray(from, from + 2 * blocks), out.subarray(to, to + blocks));
