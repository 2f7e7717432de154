/**
 * How the cache holds keys and values: as floats, as halfs, or as bytes, each head of each position with a scale of its
 * own (its largest magnitude / 127), a float behind them.
 *
 * @module
 */
import type { KeyValueType } from "../../backends/operation.ts";
import { fromFloat32, toFloat32 } from "../../checkpoint/dtype.ts";
import { roundToEven } from "../linear/activations.ts";

/** In the order of cacheRows.as.ts. */
export const keyValueTypes = ["f32", "f16", "int8"] as const satisfies readonly KeyValueType[];

/** What models use unless asked. */
export const DEFAULT_CACHE: KeyValueType = "f32";

const LARGEST = 127;

/** Bytes of one head of one position. */
export function keyValueHeadBytes(type: KeyValueType, headSize: number): number {
  if (type === "int8") return Math.ceil(headSize / 4) * 4 + 4;
  return headSize * (type === "f32" ? 4 : 2);
}

/** Heads as the cache holds them, one after another. Ties are rounded to even. */
export function encodeHeads(type: KeyValueType, heads: Float32Array, headSize: number): Uint8Array {
  if (type === "f32") return new Uint8Array(heads.slice().buffer);
  if (type === "f16") return fromFloat32("F16", heads);
  const stride = keyValueHeadBytes(type, headSize);
  const bytes = new Uint8Array((heads.length / headSize) * stride);
  const view = new DataView(bytes.buffer);
  for (let at = 0, to = 0; at < heads.length; at += headSize, to += stride) {
    const head = heads.subarray(at, at + headSize);
    const peak = head.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const factor = peak > 1e-36 ? Math.fround(LARGEST / peak) : 0;
    head.forEach((value, i) => {
      view.setInt8(to + i, roundToEven(Math.fround(value * factor)));
    });
    view.setFloat32(to + stride - 4, Math.fround(peak / LARGEST), true);
  }
  return bytes;
}

/** The floats of what {@link encodeHeads} made. */
export function decodeHeads(type: KeyValueType, bytes: Uint8Array, headSize: number): Float32Array {
  const stride = keyValueHeadBytes(type, headSize);
  const heads = new Float32Array((bytes.length / stride) * headSize);
  if (type !== "int8") {
    toFloat32(type === "f32" ? "F32" : "F16", bytes, heads);
    return heads;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, from = 0; at < heads.length; at += headSize, from += stride) {
    const scale = view.getFloat32(from + stride - 4, true);
    for (let i = 0; i < headSize; i++) heads[at + i] = view.getInt8(from + i) * scale;
  }
  return heads;
}
