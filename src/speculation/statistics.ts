import type { BurstReport } from "./policy.ts";

/** How speculation went. */
export interface SpeculationStatistics {
  /** Tokens of a draft, on average over verifications that had one; 0 when none had. */
  readonly draft: number;
  /** Tokens drafted. */
  readonly drafted: number;
  /** Of those, tokens that became part of the answer; none after a rejected one ever does. */
  readonly accepted: number;
  /** accepted / drafted; null when nothing was drafted. */
  readonly acceptanceRate: number | null;
  /** Tokens that a verification gave each sequence, on average; 1 is plain decoding. */
  readonly tokensPerVerify: number;
  /** Time per token without drafts, measured on some tokens of the same answer, over that with; null unmeasured. */
  readonly speedup: number | null;
  /** Seconds spent on drafts, and on verification, the very first aside. */
  readonly draftSeconds: number;
  readonly verifySeconds: number;
}

/** Adds up the reports of bursts. */
export class SpeculationMeter {
  #drafts = 0;
  #drafted = 0;
  #accepted = 0;
  #tokens = 0;
  #verifications = 0;
  #draftSeconds = 0;
  #verifySeconds = 0;
  #bursts = 0;
  /** Seconds per token of bursts without a draft. */
  readonly #plain: number[] = [];

  add({ sequences, rows, verifySeconds, drafts }: BurstReport, tokens: number): void {
    const outcomes = drafts.flatMap((draft) => draft.outcomes);
    this.#drafts += outcomes.length;
    for (const { drafted, accepted } of outcomes) {
      this.#drafted += drafted;
      this.#accepted += accepted;
    }
    this.#verifications += sequences;
    // The first burst records its step.
    if (this.#bursts++ === 0) return;
    this.#tokens += tokens;
    this.#verifySeconds += verifySeconds;
    this.#draftSeconds += drafts.reduce((sum, { seconds }) => sum + seconds, 0);
    if (rows === sequences && drafts.length === 0) this.#plain.push(verifySeconds / sequences);
  }

  get summary(): SpeculationStatistics {
    const [drafts, drafted, accepted] = [this.#drafts, this.#drafted, this.#accepted];
    const plain = this.#plain.reduce((sum, seconds) => sum + seconds, 0) / this.#plain.length;
    const [draftSeconds, verifySeconds] = [this.#draftSeconds, this.#verifySeconds];
    return {
      draft: drafts > 0 ? drafted / drafts : 0,
      drafted,
      accepted,
      acceptanceRate: drafted > 0 ? accepted / drafted : null,
      // Every verification gives one token of its own.
      tokensPerVerify: this.#verifications > 0 ? 1 + accepted / this.#verifications : 1,
      speedup: this.#plain.length > 0 ? (plain * this.#tokens) / (draftSeconds + verifySeconds) : null,
      draftSeconds,
      verifySeconds,
    };
  }
}
