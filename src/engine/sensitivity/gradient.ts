/**
 * Sensitivities from gradients: all of them in one pass back, instead of a run of the model for each.
 *
 * For a small change E of a weight, the Kullback-Leibler divergence of a prediction is E^T F E / 2 with F the Fisher
 * information of the predicted distribution. For noise of variance s_i^2 in row i its mean is half the sum of
 * s_i^2 F_ij,ij, and the diagonal of F is the mean square of dLoss/dW_ij where the gradient of the loss by the logits is
 * random with mean 0 and covariance diag(p) - p p^T, as it is for labels drawn from p. Predictions of a sequence being
 * independent draws, the square of their summed gradient has the mean of the sum of squares: one pass back for a sequence.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec, LinearSpec } from "../../models/decoder.ts";
import { decoderGradient, sequencesAtOnce } from "../gradient/decoder.ts";
import { fisherLoss } from "../gradient/fisherLoss.ts";
import { RowNorms } from "../gradient/rowNorms.ts";
import type { Sequences } from "../sequences.ts";
import type { SensitivityPart } from "./options.ts";
import { type WeightTensor, weightTensors } from "./tensors.ts";

export interface GradientRun {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly sequences: Sequences;
  /** Of the random signs. */
  readonly seed: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** One part for each sequence from number `from` on. */
export async function* gradientSensitivities(run: GradientRun, from = 0): AsyncGenerator<SensitivityPart> {
  const { spec, sequences } = run;
  const tensors = weightTensors(spec);
  const batch = sequencesAtOnce(spec, sequences);
  for (let at = from; at < sequences.length; at += batch) {
    const part = sequences.slice(at, at + batch);
    const onProgress = (done: number, total: number) =>
      run.onProgress?.((at + (part.length * done) / total) * 1000, sequences.length * 1000);
    const fisher = new Fisher(run, tensors, part);
    await decoderGradient({
      ...run,
      sequences: part,
      onProgress,
      loss: fisherLoss(spec.vocabularySize, run.seed + at),
      observer: fisher,
    }).finally(() => fisher.free());
    yield* part.map(({ length }, s) => ({ tokens: length, values: fisher.values(s) }));
  }
}

/** Gathers half of the mean squares of row gradients, times the rows' mean squares, over a batch of sequences. */
class Fisher {
  readonly #run: GradientRun;
  readonly #tensors: readonly WeightTensor[];
  readonly #sequences: Sequences;
  /** By linear layer: the mean square of each row. */
  readonly #powers = new Map<LinearSpec, Float64Array>();
  /** By sequence, by tensor name. */
  readonly #sums: Map<string, number>[];
  /** By sequence: the gradient of a tied head's rows that the sequence also looks up. */
  readonly #tied: Map<number, Float32Array>[];
  readonly #norms: RowNorms;

  constructor(run: GradientRun, tensors: readonly WeightTensor[], sequences: Sequences) {
    this.#run = run;
    this.#tensors = tensors;
    this.#sequences = sequences;
    this.#sums = sequences.map(() => new Map());
    this.#norms = new RowNorms(run.backend);
    const { spec } = run;
    this.#tied = sequences.map((ids) => {
      const rows = spec.head === spec.embedding ? ids : [];
      return new Map(rows.map((id) => [id, new Float32Array(spec.hiddenSize)]));
    });
  }

  /** Sensitivities of a sequence in the order of the tensors. */
  values(sequence: number): number[] {
    const sums = this.#sums[sequence];
    return this.#tensors.map(({ name }) => sums.get(name)! / (2 * this.#sequences[sequence].length));
  }

  free(): void {
    this.#norms.free();
  }

  weight(linear: LinearSpec, values: Float32Array): void {
    const { rows, columns } = linear;
    this.#powers.set(linear, rowPowers(values, rows, columns));
  }

  async linear(linear: LinearSpec, sequence: number, input: Float32Array, dOut: Float32Array): Promise<void> {
    const { head } = this.#run.spec;
    const squares =
      linear === head
        ? this.#headNorms(sequence, input, dOut)
        : await this.#norms.squares(input, dOut, linear.columns);
    const powers = this.#powers.get(linear)!;
    this.#add(
      sequence,
      linear.weight,
      squares.reduce((sum, square, row) => sum + square * powers[row], 0),
    );
  }

  embed(sequence: number, dRows: Float32Array): void {
    const { embedding, head } = this.#run.spec;
    const { columns } = embedding;
    const found = new Map<number, Float32Array>();
    for (const [t, id] of this.#sequences[sequence].entries()) {
      const row = found.get(id) ?? new Float32Array(columns);
      for (let i = 0; i < columns; i++) row[i] += dRows[t * columns + i];
      found.set(id, row);
    }
    const powers = this.#powers.get(embedding)!;
    let sum = 0;
    for (const [id, row] of found) {
      // As a head the row has its square already; the square of the sum lacks twice the product.
      const other = head === embedding ? this.#tied[sequence].get(id)! : undefined;
      for (let i = 0; i < columns; i++) sum += powers[id] * row[i] * (row[i] + (other ? 2 * other[i] : 0));
    }
    this.#add(sequence, embedding.weight, sum);
  }

  /** A token's label moves the head through its own prediction only: squares add up exactly. */
  #headNorms(sequence: number, input: Float32Array, dOut: Float32Array): Float64Array {
    const { rows, columns } = this.#run.spec.head;
    const squares = new Float64Array(rows);
    const tied = this.#tied[sequence];
    for (let t = 0; t * columns < input.length; t++) {
      const x = input.subarray(t * columns, (t + 1) * columns);
      const power = x.reduce((sum, value) => sum + value * value, 0);
      for (let row = 0; row < rows; row++) squares[row] += power * dOut[t * rows + row] ** 2;
      for (const [id, gradient] of tied) {
        const pull = dOut[t * rows + id];
        for (let i = 0; i < columns; i++) gradient[i] += pull * x[i];
      }
    }
    return squares;
  }

  #add(sequence: number, name: string, value: number): void {
    const sums = this.#sums[sequence];
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
}

function rowPowers(values: Float32Array, rows: number, columns: number): Float64Array {
  const powers = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let i = row * columns; i < (row + 1) * columns; i++) sum += values[i] ** 2;
    powers[row] = sum / columns;
  }
  return powers;
}
