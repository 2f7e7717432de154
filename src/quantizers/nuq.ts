/**
 * Non-uniform scalar quantization (Q-Palette, section C.1): the levels of the best scalar quantizer of a Gaussian.
 *
 * @module
 */
import { positiveLevels } from "./codebooks/scalar.ts";
import { ScalarQuantizer } from "./scalar.ts";
import type { Scheme } from "./scheme.ts";

/** The 2^bits Lloyd-Max levels of the unit Gaussian, ascending; bits from 2 to 8. */
export function nuqLevels(bits: number): Float32Array {
  const positive = positiveLevels[bits];
  return Float32Array.from([...positive.map((level) => -level).reverse(), ...positive]);
}

export function nuqQuantizer(scheme: Scheme): ScalarQuantizer {
  return new ScalarQuantizer(scheme, nuqLevels(scheme.bits), 1);
}
