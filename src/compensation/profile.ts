/**
 * What the inputs of a layer are like, from sample tokens: for choosing channels without looking at each token, or with
 * buckets whose borders are known beforehand (DecDEC, section 4.3).
 *
 * @module
 */

export interface InputProfile {
  /** Mean square of each channel. */
  readonly energies: Float32Array;
  /** The largest magnitude of all. */
  readonly largest: number;
  /** Largest magnitude over the samples of the channel of rank i in its sample, [columns]. */
  readonly ranked: Float32Array;
}

/** Gathers a profile from inputs [tokens, columns]. */
export class InputProfiler {
  readonly #columns: number;
  readonly #sums: Float64Array;
  readonly #ranked: Float32Array;
  #tokens = 0;

  constructor(columns: number) {
    this.#columns = columns;
    this.#sums = new Float64Array(columns);
    this.#ranked = new Float32Array(columns);
  }

  add(inputs: Float32Array): void {
    for (let at = 0; at < inputs.length; at += this.#columns) {
      const row = inputs.subarray(at, at + this.#columns);
      for (let i = 0; i < row.length; i++) this.#sums[i] += row[i] * row[i];
      const magnitudes = row.map(Math.abs).sort().reverse();
      for (let i = 0; i < row.length; i++) this.#ranked[i] = Math.max(this.#ranked[i], magnitudes[i]);
      this.#tokens++;
    }
  }

  result(): InputProfile {
    const energies = Float32Array.from(this.#sums, (sum) => sum / Math.max(1, this.#tokens));
    return { energies, largest: this.#ranked[0] ?? 0, ranked: this.#ranked.slice() };
  }
}

/** The largest magnitude that the `rank`-th largest input of a token had (the paper's b15). */
export function magnitudeOfRank({ ranked }: InputProfile, rank: number): number {
  return ranked[Math.min(rank, ranked.length) - 1];
}
