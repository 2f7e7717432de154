/**
 * Nearest of many points in the plane.
 *
 * @module
 */

/** Finds the nearest of up to 65536 points (x0, y0, x1, y1, ...) through a grid of candidate lists. */
export class NearestPoint {
  readonly #points: Float32Array;
  /** The grid covers [-reach, reach]^2 with side x side cells. */
  readonly #side: number;
  readonly #reach: number;
  /** Cell c may hold points nearest to candidates[starts[c]] .. candidates[starts[c + 1]]. */
  readonly #starts: Uint32Array;
  readonly #candidates: Uint16Array;
  readonly #all: Uint16Array;

  constructor(points: Float32Array) {
    const count = points.length / 2;
    this.#points = points;
    this.#all = Uint16Array.from({ length: count }, (_, i) => i);
    this.#reach = 1.25 * points.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    // About 16 cells a point, so that a cell has 2 or 3 candidates.
    const depth = Math.min(8, Math.ceil(Math.log2(Math.sqrt(16 * count))));
    this.#side = 2 ** depth;
    const lists = new Array<ArrayLike<number>>(this.#side ** 2);
    this.#divide(this.#all, 0, 0, this.#side, lists);
    this.#starts = new Uint32Array(lists.length + 1);
    lists.forEach((list, cell) => {
      this.#starts[cell + 1] = this.#starts[cell] + list.length;
    });
    this.#candidates = new Uint16Array(this.#starts[lists.length]);
    lists.forEach((list, cell) => {
      this.#candidates.set(list, this.#starts[cell]);
    });
  }

  /** Index of the point nearest to (x, y); the first of equals. */
  find(x: number, y: number): number {
    const half = this.#side / 2;
    const slope = half / this.#reach;
    const column = x * slope + half;
    const row = y * slope + half;
    if (!(column >= 0 && column < this.#side && row >= 0 && row < this.#side)) {
      return this.#nearestOf(this.#all, 0, this.#all.length, x, y);
    }
    const cell = (row | 0) * this.#side + (column | 0);
    return this.#nearestOf(this.#candidates, this.#starts[cell], this.#starts[cell + 1], x, y);
  }

  #nearestOf(list: Uint16Array, from: number, to: number, x: number, y: number): number {
    const points = this.#points;
    let best = list[from];
    let least = Infinity;
    for (let i = from; i < to; i++) {
      const point = list[i];
      const dx = points[2 * point] - x;
      const dy = points[2 * point + 1] - y;
      const distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = point;
      }
    }
    return best;
  }

  /**
   * Fills the lists of the square of `size` cells at (column, row). A point that stays farther than the square's
   * middle's nearest point over the whole square (its bisector passes outside) is no candidate.
   */
  #divide(
    candidates: ArrayLike<number>,
    column: number,
    row: number,
    size: number,
    lists: ArrayLike<number>[],
  ): void {
    const unit = (2 * this.#reach) / this.#side;
    const half = (size * unit) / 2;
    const x = column * unit - this.#reach + half;
    const y = row * unit - this.#reach + half;
    const middle = Uint16Array.from(candidates);
    const points = this.#points;
    const nearest = this.#nearestOf(middle, 0, middle.length, x, y);
    const nx = points[2 * nearest] - x;
    const ny = points[2 * nearest + 1] - y;
    const kept = middle.filter((point) => {
      const px = points[2 * point] - x;
      const py = points[2 * point + 1] - y;
      const extent = half * (Math.abs(px - nx) + Math.abs(py - ny));
      return 2.0001 * extent >= px * px + py * py - (nx * nx + ny * ny);
    });
    if (size === 1) {
      lists[row * this.#side + column] = kept;
      return;
    }
    const next = size / 2;
    this.#divide(kept, column, row, next, lists);
    this.#divide(kept, column + next, row, next, lists);
    this.#divide(kept, column, row + next, next, lists);
    this.#divide(kept, column + next, row + next, next, lists);
  }
}
