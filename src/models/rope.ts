/**
 * Rotary position embeddings, computed as transformers does: inverse frequencies and angles
 * in float32, so that far positions agree.
 *
 * @module
 */

/** Which angles a layer's queries and keys are turned by. */
export interface RopeSpec {
  /** Elements of a head that turn (even; less than the head's size for partial rotation). */
  readonly rotated: number;
  /**
   * float32 [rotated / 2] for a sequence of `length` tokens. Where they depend on it (LongRoPE, dynamic),
   * all of a sequence's positions turn by those of its final length: whoever feeds it in chunks passes the
   * length that it will reach, so that chunks and one pass agree, early tokens included.
   */
  readonly inverseFrequencies: (length: number) => Float32Array;
  /** Multiplies cos and sin (YaRN's and LongRoPE's attention factor). */
  readonly amplitude: number;
  /**
   * Where one set of frequencies gives way to another: a sequence that grows past this length has its cached
   * keys computed anew, as transformers does for Phi-3. Absent elsewhere: a dynamic rope changes a little with
   * every token, and the cache keeps what it has, as in transformers.
   */
  readonly border?: number;
  /** Positions that the rope is stretched to, where the config's `max_position_embeddings` does not count them. */
  readonly reach?: number;
}

/**
 * theta^(-2i / turning) in float32, [ceil(turning / 2)].
 *
 * @param turning elements of a head that turn
 */
export function plainInverseFrequencies(theta: number, turning: number): Float32Array {
  return periods(theta, turning).map((period) => 1 / period);
}

/** theta^(2i / turning) in float32: positions per radian. */
export function periods(theta: number, turning: number): Float32Array {
  const base = Math.fround(theta);
  return Float32Array.from(
    { length: Math.ceil(turning / 2) },
    (_, i) => base ** Math.fround((2 * i) / turning),
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
