/** Measurements that count. */
const WINDOW = 32;
/** Share of a step's seconds that a further row costs, until measured: about that of int8 products on a CPU. */
const SHARE_PER_ROW = 0.2;
/** A step that took this many times as long as expected was held up by something else. */
const HICCUP = 2;
/** Variance of the rows from which on a line is fitted. */
const ENOUGH_SPREAD = 0.25;

/** What steps of one reading cost by their rows: a line through the latest measurements. */
export class StepCost {
  readonly #points: { readonly rows: number; readonly seconds: number }[] = [];
  readonly #recorded = new Set<number>();
  #oneRow = Number.NaN;
  /** What each further row adds, as a share of one; kept while all measurements have the same rows. */
  #share = SHARE_PER_ROW;

  get measured(): boolean {
    return this.#points.length > 0;
  }

  /** Expected seconds of a step; NaN before the first measurement. */
  seconds(rows: number): number {
    return this.#oneRow * (1 + this.#share * (rows - 1));
  }

  /** The first step of so many rows is left out: it is recorded on the way. */
  observe(rows: number, seconds: number): void {
    if (!this.#recorded.has(rows)) {
      this.#recorded.add(rows);
      return;
    }
    const most = this.#points.length < 4 ? Infinity : HICCUP * this.seconds(rows);
    this.#points.push({ rows, seconds: Math.min(seconds, most) });
    if (this.#points.length > WINDOW) this.#points.shift();
    this.#fit();
  }

  #fit(): void {
    const mean = (of: (point: { rows: number; seconds: number }) => number) =>
      this.#points.reduce((sum, point) => sum + of(point), 0) / this.#points.length;
    const [rows, seconds] = [mean((point) => point.rows), mean((point) => point.seconds)];
    const spread = mean((point) => (point.rows - rows) ** 2);
    if (spread > ENOUGH_SPREAD) {
      const slope = mean((point) => (point.rows - rows) * (point.seconds - seconds)) / spread;
      const one = seconds - slope * (rows - 1);
      // Rows that cost less than nothing, or all there is, are noise.
      this.#share = one > 0 ? Math.min(1, Math.max(0, slope / one)) : 1;
    }
    this.#oneRow = seconds / (1 + this.#share * (rows - 1));
  }
}
