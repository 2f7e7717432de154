import type { Reading } from "../engine/reading.ts";
import type { Runner } from "../engine/runner.ts";
import { sampleFrom } from "../engine/sampler/sampler.ts";
import type { Draft, Drafter } from "./drafter.ts";
import { lengthOf, type Sequence, tokenAt } from "./sequence.ts";

export interface ReadingDrafterOptions {
  /**
   * Keeps the drafts' keys and values in places of their own, so far behind the sequences': the ablation of
   * QSpec's Table 2. By default drafts and verification share one cache.
   */
  readonly cacheOffset?: number;
}

/** A draft in the making. */
interface Attempt {
  readonly sequence: Sequence;
  readonly length: number;
  readonly ids: number[];
  readonly distributions: Float32Array[];
  /** The answer with the draft, for the penalties. */
  readonly generated: number[];
}

/**
 * Drafts with a cheaper reading of the model itself (QSpec, arXiv:2410.11305, section 3.1). The entries it leaves in
 * the cache are those of positions that verification writes anew: nothing has to be rolled back.
 */
export function readingDrafter(
  name: string,
  runner: Pick<Runner, "step" | "chunk">,
  reading: Reading,
  options: ReadingDrafterOptions = {},
): Drafter {
  const { cacheOffset = 0 } = options;
  /** By sequence, entries that a cache of the drafts' own holds. */
  const filled = new Map<number, number>();

  /** Feeds one token of each sequence; fills row i of the logits for it. */
  async function feed(attempts: readonly Attempt[]): Promise<Float32Array[]> {
    const positions = attempts.map(({ sequence, ids }) => lengthOf(sequence) - 1 + ids.length);
    const logits = await runner.step(
      {
        ids: attempts.map(({ sequence, ids }) => ids.at(-1) ?? tokenAt(sequence, lengthOf(sequence) - 1)),
        positions,
        sequences: attempts.map(({ sequence }) => sequence.slot + cacheOffset),
        length: positions.map((position) => position + 1),
      },
      "all",
      reading,
    );
    const size = logits.length / attempts.length;
    return attempts.map((_, i) => logits.subarray(i * size, (i + 1) * size));
  }

  /** Brings the drafts' own cache up to the last token but one. */
  async function catchUp(sequence: Sequence): Promise<void> {
    const total = lengthOf(sequence);
    const ready = total - 1;
    for (let at = Math.min(filled.get(sequence.slot) ?? 0, ready); at < ready; at += runner.chunk) {
      const positions = Array.from({ length: Math.min(runner.chunk, ready - at) }, (_, i) => at + i);
      const ids = positions.map((position) => tokenAt(sequence, position));
      const sequences = positions.map(() => sequence.slot + cacheOffset);
      await runner.step({ ids, positions, sequences, length: total }, "none", reading);
    }
  }

  return {
    name,
    stepsPerToken: 1,
    async draft(sequences, lengths) {
      if (cacheOffset > 0) {
        for (const [i, sequence] of sequences.entries()) {
          await catchUp(sequence);
          filled.set(sequence.slot, lengthOf(sequence) - 1 + lengths[i]);
        }
      }
      const attempts = sequences.map((sequence, i): Attempt => {
        const generated = [...sequence.generated];
        return { sequence, length: lengths[i], ids: [], distributions: [], generated };
      });
      for (let i = 0; ; i++) {
        const growing = attempts.filter(({ length }) => length > i);
        if (growing.length === 0) break;
        const rows = await feed(growing);
        growing.forEach((attempt, row) => {
          extend(attempt, rows[row]);
        });
      }
      return attempts.map(
        ({ sequence, ids, distributions }): Draft =>
          sequence.sampler.greedy ? { ids } : { ids, distributions },
      );
    },
  };
}

function extend({ sequence, ids, distributions, generated }: Attempt, logits: Float32Array): void {
  const { sampler, prompt } = sequence;
  const history = { prompt, generated };
  let id: number;
  if (sampler.greedy) id = sampler.sample(logits, history);
  else {
    const distribution = sampler.distribution(logits, history);
    distributions.push(distribution);
    id = sampleFrom(distribution, sampler.random);
  }
  ids.push(id);
  generated.push(id);
}
