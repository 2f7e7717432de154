/**
 * The deterministic random numbers behind rotations, codebooks and measurements. They are part of the
 * checkpoint format (rotation signs), so the algorithm never changes.
 *
 * @module
 */

/**
 * Word `index` of the stream `seed`: a counter through the 32-bit finalizer of MurmurHash3,
 * mix(mix(seed + 0x9e3779b9) + 0x9e3779b9 (index + 1)) mod 2^32.
 */
export function randomWord(seed: number, index: number): number {
  return mixWord(mixWord(seed + 0x9e3779b9) + Math.imul(0x9e3779b9, index + 1));
}

/** Fills `values` with standard Gaussian samples of the stream `seed` (Box-Muller, 32-bit uniforms). */
export function fillGaussian<T extends Float32Array | Float64Array>(values: T, seed: number): T {
  for (let i = 0; i < values.length; i += 2) {
    const radius = Math.sqrt(-2 * Math.log((randomWord(seed, i) + 0.5) / 0x1_0000_0000));
    const angle = (2 * Math.PI * randomWord(seed, i + 1)) / 0x1_0000_0000;
    values[i] = radius * Math.cos(angle);
    if (i + 1 < values.length) values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}

/** The 32-bit finalizer of MurmurHash3. */
export function mixWord(word: number): number {
  let h = word | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
