/**
 * Williamson's Hadamard matrices of order 4n (J. Williamson, Hadamard's determinant theorem and the sum of
 * four squares, 1944) for the n that Paley's constructions leave out: four symmetric circulants A, B, C, D of
 * order n with A^2 + B^2 + C^2 + D^2 = 4n I.
 *
 * @module
 */

/**
 * First halves (entries 0 to (n - 1) / 2) of the first rows of A, B, C, D. Found by search: of all symmetric
 * rows fixed by a group of multipliers, four whose power spectra add up to 4n (n = 43: multiplier 6; n = 23: none).
 */
const halfRows: Readonly<Record<number, readonly string[]>> = {
  23: ["+--+-+-+++++", "+--++-+-+-++", "+++---++--++", "+--+--+++---"],
  43: [
    "+---++--++++-+-+++-++-",
    "++---++++-+--+--++----",
    "+++-+-++--+-+-++++-+--",
    "++-++++++----+-+--++-+",
  ],
};

/** Which circulant, and its sign, stands in each block of the quaternion-like array. */
const blocks = [
  [1, 2, 3, 4],
  [-2, 1, -4, 3],
  [-3, 4, 1, -2],
  [-4, -3, 2, 1],
];

/** A Hadamard matrix of the given order as row-major +-1, or undefined where no rows are known. */
export function williamson(order: number): Int8Array | undefined {
  const n = order / 4;
  if (!Object.hasOwn(halfRows, n)) return undefined;
  const halves = halfRows[n];
  const h = new Int8Array(order * order);
  for (let i = 0; i < order; i++) {
    for (let j = 0; j < order; j++) {
      const block = blocks[Math.floor(i / n)][Math.floor(j / n)];
      const distance = Math.abs((i % n) - (j % n));
      const sign = halves[Math.abs(block) - 1][Math.min(distance, n - distance)] === "+" ? 1 : -1;
      h[i * order + j] = Math.sign(block) * sign;
    }
  }
  return h;
}
