/**
 * Symmetric uniform quantization, the baseline: equally spaced levels without a zero, clipped where the
 * squared error of the row is least.
 *
 * @module
 */
import { uniformSteps } from "./codebooks/scalar.ts";
import { ScalarQuantizer } from "./scalar.ts";
import type { Scheme } from "./scheme.ts";

/** Code c stands for c - (2^bits - 1) / 2: the row's scale is the step. */
export function uniformLevels(bits: number): Float32Array {
  return Float32Array.from({ length: 2 ** bits }, (_, code) => code - (2 ** bits - 1) / 2);
}

export function uniformQuantizer(scheme: Scheme): ScalarQuantizer {
  return new ScalarQuantizer(scheme, uniformLevels(scheme.bits), 1 / uniformSteps[scheme.bits]);
}
