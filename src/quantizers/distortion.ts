/**
 * How far a quantizer is from what information theory allows.
 *
 * @module
 */
import type { Quantizer } from "./quantizer.ts";
import { fillGaussian } from "./random.ts";

export interface Distortion {
  /** Mean squared error per unit-variance Gaussian weight. */
  readonly distortion: number;
  /** 2^(-2 bits), Shannon's distortion-rate bound. */
  readonly bound: number;
  /** Sequences of 256 weights measured. */
  readonly sequences: number;
}

/** Long rows, so that fitting each row's scale to its samples does not flatter the result. */
const COLUMNS = 4096;
const SEQUENCE_LENGTH = 256;
const ROWS_AT_ONCE = 16;

/**
 * Rounds at least `sequences` sequences of 256 independent Gaussian weights (whole groups of 16 rows of 4096 are
 * measured), row scales included.
 */
export function measureDistortion(quantizer: Quantizer, sequences: number, seed: number): Distortion {
  const groupSequences = (ROWS_AT_ONCE * COLUMNS) / SEQUENCE_LENGTH;
  const groups = Math.max(1, Math.ceil(sequences / groupSequences));
  const weights = new Float32Array(ROWS_AT_ONCE * COLUMNS);
  let error = 0;
  let power = 0;
  for (let group = 0; group < groups; group++) {
    fillGaussian(weights, seed + group);
    const decoded = quantizer.decode(quantizer.encode(weights, ROWS_AT_ONCE, COLUMNS));
    for (let i = 0; i < weights.length; i++) {
      error += (weights[i] - decoded[i]) ** 2;
      power += weights[i] ** 2;
    }
  }
  // Relative to the samples' own power: their variance differs from 1 by chance.
  return {
    distortion: error / power,
    bound: 2 ** (-2 * quantizer.scheme.bits),
    sequences: groups * groupSequences,
  };
}
