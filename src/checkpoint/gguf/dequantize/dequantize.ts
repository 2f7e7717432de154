import { toFloat32 } from "../../dtype.ts";

/**
 * Decodes `blocks` consecutive blocks of stored bytes, beginning at `bytes[from]`, into float32 values
 * beginning at `out[to]`. Equal bit for bit to the PyPI package gguf (NaN payloads apart).
 *
 * Products such as scale * code are exact in float64 and rounded once, by the store into `out`;
 * that equals float32 arithmetic because the float16 scales leave room for the codes' bits.
 */
export type Dequantize = (
  bytes: Uint8Array,
  from: number,
  out: Float32Array,
  to: number,
  blocks: number,
) => void;

/** Computes a table at its first use. */
export function lazy<T>(make: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= make());
}

/** All float16 values by their bits. */
export const halfTable = lazy(() => {
  const table = new Float32Array(65536);
  const codes = Uint16Array.from({ length: 65536 }, (_, code) => code);
  toFloat32("F16", new Uint8Array(codes.buffer), table);
  return table;
});
