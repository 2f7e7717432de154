/**
 * Sensitivities by trial: noise on one weight tensor at a time, and how far the predictions move
 * (HIGGS, arXiv:2411.17525; Q-Palette, section E.1).
 *
 * A sequence's residual streams are kept, so that a trial starts at the layer it changes: half of the work. Each
 * sequence has noise of its own, the same direction at every norm with alternating sign, which takes the error of
 * third order out of the fit.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { fillGaussian, randomWord } from "../../quantizers/random.ts";
import { longestOf, type Sequences } from "../sequences.ts";
import type { LoadedWeights } from "../weights.ts";
import type { SensitivityPart } from "./options.ts";
import { weightTensors } from "./tensors.ts";
import { Trials } from "./trials.ts";

export interface NoiseRun {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  /** All float weights. */
  readonly weights: LoadedWeights;
  readonly sequences: Sequences;
  /** Of the noise, relative to the weights' norm. */
  readonly norms: readonly number[];
  readonly seed: number;
  /** Called after every trial. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** One part for each sequence from number `from` on. */
export async function* noiseSensitivities(run: NoiseRun, from = 0): AsyncGenerator<SensitivityPart> {
  const { spec, sequences, norms, seed, signal } = run;
  const tensors = weightTensors(spec);
  const total = sequences.length * tensors.length * norms.length;
  let done = from * tensors.length * norms.length;
  const trials = new Trials(spec, run.backend, run.weights, longestOf(sequences));
  try {
    for (let s = from; s < sequences.length; s++) {
      await trials.start(sequences[s]);
      const values: number[] = [];
      for (const [t, tensor] of tensors.entries()) {
        const stored = run.checkpoint.tensors.get(tensor.name)!;
        const weights = await stored.readRows(0, tensor.rows);
        const noise = relativeNoise(weights, tensor.rows, tensor.columns, randomWord(seed + s, t));
        const divergences: number[] = [];
        for (const [i, norm] of norms.entries()) {
          signal?.throwIfAborted();
          const step = (s + i) % 2 === 0 ? norm : -norm;
          const noisy = weights.map((weight, at) => weight + step * noise[at]);
          divergences.push(await trials.divergence([{ tensor, values: noisy }]));
          run.onProgress?.(++done, total);
        }
        values.push(slope(norms, divergences));
      }
      yield { tokens: sequences[s].length, values };
    }
  } finally {
    trials.dispose();
  }
}

/**
 * Gaussian noise as large as the weights, row by row: quantizers scale each row, and the rotation spreads a row's
 * error evenly over its columns.
 */
function relativeNoise(weights: Float32Array, rows: number, columns: number, seed: number): Float32Array {
  const noise = fillGaussian(new Float32Array(rows * columns), seed);
  for (let row = 0; row < rows; row++) {
    const [start, end] = [row * columns, (row + 1) * columns];
    let power = 0;
    for (let i = start; i < end; i++) power += weights[i] ** 2;
    const scale = Math.sqrt(power / columns);
    for (let i = start; i < end; i++) noise[i] *= scale;
  }
  return noise;
}

/** a of divergence = a norm^2, by least squares. */
function slope(norms: readonly number[], divergences: readonly number[]): number {
  const dot = norms.reduce((sum, norm, i) => sum + norm ** 2 * divergences[i], 0);
  return dot / norms.reduce((sum, norm) => sum + norm ** 4, 0);
}
