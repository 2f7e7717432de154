/** Share of a step's seconds that a further row costs, until measured: about that of int8 products on a CPU. */
const SHARE_PER_ROW = 0.2;
/** How far that share is expected to be off, against the seconds' own relative error. */
const SHARE_SCALE = 0.3;
/** Part of an error that a measurement corrects. */
const RATE = 0.2;
/** A step that takes this many times as long as expected, or as short, is taken to be held up by something else. */
const HICCUP = 2;
/** How fast an old share is forgotten: what cost too much once is tried again. */
const FORGETTING = 0.003;

/**
 * What steps of one reading cost by their rows: seconds = one * (1 + share * (rows - 1)), corrected by every
 * measurement (normalized least mean squares of the relative error), so that it follows a machine whose load changes.
 */
export class StepCost {
  readonly #recorded = new Set<number>();
  #one = Number.NaN;
  #share = SHARE_PER_ROW;

  get measured(): boolean {
    return !Number.isNaN(this.#one);
  }

  /** Expected seconds of a step; NaN before the first measurement. */
  seconds(rows: number): number {
    return this.#one * (1 + this.#share * (rows - 1));
  }

  /** The first step of so many rows is left out: it is recorded on the way. */
  observe(rows: number, seconds: number): void {
    if (!this.#recorded.has(rows)) {
      this.#recorded.add(rows);
      return;
    }
    if (!this.measured) {
      this.#one = seconds / (1 + this.#share * (rows - 1));
      return;
    }
    const error = Math.min(HICCUP, Math.max(1 / HICCUP, seconds / this.seconds(rows))) - 1;
    const weight = (SHARE_SCALE * (rows - 1)) / (1 + this.#share * (rows - 1));
    const correction = (RATE * error) / (1 + weight ** 2);
    this.#one *= 1 + correction;
    this.#share += SHARE_SCALE * weight * correction + FORGETTING * (SHARE_PER_ROW - this.#share);
    this.#share = Math.min(1, Math.max(0, this.#share));
  }
}
