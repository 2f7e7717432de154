import type { Runner } from "../runner.ts";
import { createSampler } from "../sampler/sampler.ts";

export interface SampleOptions {
  readonly sequences: number;
  readonly length: number;
  /** The token that every sequence begins with. */
  readonly first: number;
  readonly seed: number;
  /** Called after every token of all sequences. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Token sequences that a model draws from its own predictions: what it knows, where no text is at hand.
 * The runner must hold `sequences` side by side.
 */
export async function sampleSequences(runner: Runner, options: SampleOptions): Promise<number[][]> {
  const { sequences, length, first, seed, onProgress, signal } = options;
  const { vocabularySize } = runner.spec;
  const samplers = Array.from({ length: sequences }, (_, s) => createSampler({ seed: seed + s }));
  const ids = samplers.map(() => [first]);
  const places = samplers.map((_, s) => s);
  for (let position = 0; position + 1 < length; position++) {
    signal?.throwIfAborted();
    const logits = await runner.step(
      {
        ids: ids.map((sequence) => sequence[position]),
        positions: places.map(() => position),
        sequences: places,
        length,
      },
      "all",
    );
    for (const s of places) {
      const row = logits.subarray(s * vocabularySize, (s + 1) * vocabularySize);
      ids[s].push(samplers[s].sample(row, { prompt: [], generated: [] }));
    }
    onProgress?.(position + 1, length - 1);
  }
  return ids;
}
