/**
 * Rotary position embeddings and their extensions, computed as transformers does: inverse
 * frequencies and angles in float32, so that far positions agree.
 *
 * @module
 */

/** Which angles a layer's queries and keys are turned by. */
export interface RopeSpec {
  /** Elements of a head that turn (even; less than the head's size for partial rotation). */
  readonly rotated: number;
  /** float32 [rotated / 2] for a sequence whose longest position so far is `length - 1`. */
  readonly inverseFrequencies: (length: number) => Float32Array;
  /** Multiplies cos and sin (YaRN's and LongRoPE's attention factor). */
  readonly amplitude: number;
}

/** theta^(-2i / rotated) in float32. */
export function plainInverseFrequencies(theta: number, rotated: number): Float32Array {
  return Float32Array.from({ length: rotated / 2 }, (_, i) =>
    Math.fround(1 / Math.fround(theta ** Math.fround((2 * i) / rotated))),
  );
}

/** Fills out [rotated] with the cosines, then the sines of one position. */
export function ropeRow(
  spec: RopeSpec,
  frequencies: Float32Array,
  position: number,
  out: Float32Array,
): void {
  const half = spec.rotated / 2;
  for (let i = 0; i < half; i++) {
    const angle = Math.fround(frequencies[i] * position);
    out[i] = Math.cos(angle) * spec.amplitude;
    out[half + i] = Math.sin(angle) * spec.amplitude;
  }
}
