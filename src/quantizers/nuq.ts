/**
 * Non-uniform scalar quantization (Q-Palette, section C.1): the levels of the best scalar quantizer of a Gaussian.
 *
 * @module
 */
import { positiveLevels } from "./codebooks/scalar.ts";
import { ScalarQuantizer } from "./scalar.ts";
import type { Scheme } from "./scheme.ts";

interface IntegerGrid {
  /** The positive levels in units of `step`, within 7 bits. */
  readonly positive: readonly number[];
  /** In standard deviations. */
  readonly step: number;
}

/**
 * Up to 4 bits the levels are small integers, so that products with int8 activations are exact. The steps were
 * searched for the least error: .117482, .034561, .009522, at most 0.22% above the best real levels. Above 4 bits
 * levels are multiples of 2^-12, as the coordinates of vector quantization are.
 */
const integerGrids: Readonly<Record<number, IntegerGrid>> = {
  2: { positive: [9, 30], step: 0.0503473 },
  3: { positive: [7, 22, 39, 62], step: 0.034631 },
  4: { positive: [3, 9, 15, 21, 28, 36, 46, 61], step: 0.0448002 },
};

/** The 2^bits levels, ascending, bits from 2 to 8: integers up to 4 bits, above multiples of 2^-12 standard deviations. */
export function nuqLevels(bits: number): Float32Array {
  const positive =
    integerGrids[bits]?.positive ?? positiveLevels[bits].map((level) => Math.round(level * 4096) / 4096);
  return Float32Array.from([...positive.map((level) => -level).reverse(), ...positive]);
}

export function nuqQuantizer(scheme: Scheme): ScalarQuantizer {
  return new ScalarQuantizer(scheme, nuqLevels(scheme.bits), 1 / (integerGrids[scheme.bits]?.step ?? 1));
}
