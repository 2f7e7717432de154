/**
 * How far one model's predictions are from another's: llama.cpp's figures for comparing quantizers.
 *
 * @module
 */
import { divergence, summarizeRow } from "./softmax.ts";

export interface Agreement {
  /** Mean Kullback-Leibler divergence of the model from the other one, in nats per prediction. */
  readonly meanKlDivergence: number;
  /** Its 99th percentile over all predictions. */
  readonly klDivergence99: number;
  /** Share of predictions where both models find the same token likeliest. */
  readonly topAgreement: number;
}

/** Collects predictions, a step at a time. */
export class AgreementMeter {
  readonly #vocabulary: number;
  readonly #divergences: number[] = [];
  #agreed = 0;

  constructor(vocabulary: number) {
    this.#vocabulary = vocabulary;
  }

  /** Compares logits [rows, vocabulary] of the model with `expected`, the other one's. */
  add(logits: Float32Array, expected: Float32Array): void {
    const size = this.#vocabulary;
    for (let at = 0; at < logits.length; at += size) {
      const p = summarizeRow(expected, at, size);
      const q = summarizeRow(logits, at, size);
      this.#divergences.push(divergence(expected, p, logits, q, at, size));
      if (p.likeliest === q.likeliest) this.#agreed++;
    }
  }

  result(): Agreement {
    const sorted = Float64Array.from(this.#divergences).sort();
    return {
      meanKlDivergence: sorted.reduce((sum, value) => sum + value, 0) / sorted.length,
      klDivergence99: percentile(sorted, 0.99),
      topAgreement: this.#agreed / sorted.length,
    };
  }
}

/** Interpolated between the two nearest of ascending values. */
function percentile(sorted: Float64Array, fraction: number): number {
  const place = fraction * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}
