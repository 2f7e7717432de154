/**
 * Weights that nobody reads: any bits are codes, and which ones does not matter to the time of a product.
 *
 * @module
 */
import type { QuantizedMatrix } from "./quantizer.ts";
import { fillGaussian } from "./random.ts";
import { quantizerFor } from "./registry.ts";
import { parseScheme } from "./scheme.ts";

/** Fills an array with bytes without a pattern. */
export type Filler = (target: Uint8Array) => Uint8Array;

/** A short random run repeated: drawing every byte would take longer than the products. */
export function randomFiller(): Filler {
  const run = new Uint8Array(fillGaussian(new Float32Array(1 << 16), 1).buffer);
  return (target) => {
    for (let at = 0; at < target.length; at += run.length)
      target.set(run.subarray(0, target.length - at), at);
    return target;
  };
}

/** Weights [rows, columns] of a quantized scheme. */
export function randomMatrix(
  scheme: string,
  rows: number,
  columns: number,
  fill: Filler = randomFiller(),
): QuantizedMatrix {
  const byteLength = quantizerFor(parseScheme(scheme)).codesByteLength(rows, columns);
  return { scheme, rows, columns, codes: fill(new Uint8Array(byteLength)), scales: smallScales(rows) };
}

/** Scales small enough that outputs stay finite, all alike. */
export function smallScales(rows: number): Float32Array {
  return new Float32Array(rows).fill(1e-3);
}
