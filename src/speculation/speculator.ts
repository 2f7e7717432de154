/**
 * Draft and verify: several tokens for little more than the price of one, and the same tokens.
 *
 * @module
 */
import type { Reading } from "../engine/reading.ts";
import type { Runner } from "../engine/runner.ts";
import { acceptDraft } from "./acceptance.ts";
import type { Draft, Drafter } from "./drafter.ts";
import type { DraftPolicy, DraftReport } from "./policy.ts";
import { lengthOf, type Sequence, tokenAt } from "./sequence.ts";
import { SpeculationMeter, type SpeculationStatistics } from "./statistics.ts";

const NO_DRAFT: Draft = { ids: [] };

export interface SpeculatorOptions {
  /** The reading whose tokens count; default the runner's own. */
  readonly verifier?: Reading;
  /** Bursts without drafts at the start, which tell what drafts save. Default 0. */
  readonly controls?: number;
}

/** The drafts of a burst, and who made them. */
interface Drafted {
  readonly drafts: readonly Draft[];
  readonly authors: readonly (Drafter | undefined)[];
  readonly effort: readonly Pick<DraftReport, "drafter" | "seconds" | "steps">[];
}

/**
 * Lets sequences grow burst by burst: drafters guess, the runner verifies all guesses in one step of its own reading,
 * and what it rejects costs nothing but time. Keys and values are addressed by position, so that verification
 * overwrites the drafts' entries and what was rejected is overwritten by the next burst (QSpec, section 3.1).
 */
export class Speculator {
  readonly #runner: Pick<Runner, "step" | "chunk">;
  #controls: number;
  readonly #verifier: Reading | undefined;
  readonly #policy: DraftPolicy;
  readonly #meter = new SpeculationMeter();

  constructor(
    runner: Pick<Runner, "step" | "chunk">,
    policy: DraftPolicy,
    { verifier, controls = 0 }: SpeculatorOptions = {},
  ) {
    this.#runner = runner;
    this.#policy = policy;
    this.#verifier = verifier;
    this.#controls = controls;
  }

  /** Of all bursts so far. */
  get statistics(): SpeculationStatistics {
    return this.#meter.summary;
  }

  /** The next tokens of each sequence, at least one; the caller appends them, as far as it wants them. */
  async burst(sequences: readonly Sequence[]): Promise<readonly (readonly number[])[]> {
    const { drafts, authors, effort } = await this.#draft(sequences);
    const started = performance.now();
    const logits = await this.#verify(sequences, drafts);
    const verifySeconds = (performance.now() - started) / 1000;
    const results = sequences.map((sequence, i) => acceptDraft(sequence, drafts[i], logits[i]));
    const report = {
      sequences: sequences.length,
      rows: drafts.reduce((rows, { ids }) => rows + ids.length + 1, 0),
      verifySeconds,
      drafts: effort.map((part) => ({
        ...part,
        outcomes: results.flatMap(({ accepted }, i) =>
          authors[i] === part.drafter ? [{ drafted: drafts[i].ids.length, accepted }] : [],
        ),
      })),
    };
    this.#policy.observe(report);
    this.#meter.add(
      report,
      results.reduce((sum, { tokens }) => sum + tokens.length, 0),
    );
    return results.map(({ tokens }) => tokens);
  }

  async #draft(sequences: readonly Sequence[]): Promise<Drafted> {
    const drafts: Draft[] = sequences.map(() => NO_DRAFT);
    const authors: (Drafter | undefined)[] = sequences.map(() => undefined);
    const effort: Pick<DraftReport, "drafter" | "seconds" | "steps">[] = [];
    const fits = Math.floor(this.#runner.chunk / sequences.length) - 1;
    const choices = this.#controls-- > 0 ? [] : this.#policy.choose(sequences.length);
    for (const { drafter, length } of choices) {
      const most = (i: number) => Math.min(length, fits, sequences[i].room - 1);
      const waiting = sequences.flatMap((_, i) => (authors[i] === undefined && most(i) > 0 ? [i] : []));
      if (waiting.length === 0) continue;
      const lengths = waiting.map(most);
      const started = performance.now();
      const made = await drafter.draft(
        waiting.map((i) => sequences[i]),
        lengths,
      );
      const seconds = (performance.now() - started) / 1000;
      effort.push({ drafter, seconds, steps: drafter.stepsPerToken * Math.max(...lengths) });
      for (const [at, i] of waiting.entries()) {
        if (made[at].ids.length === 0) continue;
        drafts[i] = made[at];
        authors[i] = drafter;
      }
    }
    return { drafts, authors, effort };
  }

  /** The verifier's logits after each sequence's last token and each token of its draft, [1 + draft, vocabulary]. */
  async #verify(sequences: readonly Sequence[], drafts: readonly Draft[]): Promise<Float32Array[]> {
    const tokens = sequences.flatMap((sequence, i) => {
      const start = lengthOf(sequence) - 1;
      return [tokenAt(sequence, start), ...drafts[i].ids].map((id, at) => {
        return { id, position: start + at, slot: sequence.slot };
      });
    });
    const logits = await this.#runner.step(
      {
        ids: tokens.map(({ id }) => id),
        positions: tokens.map(({ position }) => position),
        sequences: tokens.map(({ slot }) => slot),
        length: tokens.map(({ position }) => position + 1),
      },
      "all",
      this.#verifier,
    );
    const size = logits.length / tokens.length;
    let row = 0;
    return drafts.map(({ ids }) => {
      const start = row;
      row += ids.length + 1;
      return logits.subarray(start * size, row * size);
    });
  }
}
