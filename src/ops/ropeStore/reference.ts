/** Rotates the first `rotated` elements of a head (pairs i, i + rotated / 2), cos and sin in `rope` (Su et al., 2021). */
export function rotateHead(x: Float32Array, rope: Float32Array, rotated: number): void {
  const half = rotated / 2;
  for (let i = 0; i < half; i++) {
    const [cos, sin, a, b] = [rope[i], rope[half + i], x[i], x[half + i]];
    x[i] = a * cos - b * sin;
    x[half + i] = b * cos + a * sin;
  }
}

export interface RopeStoreArrays {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly rope: Float32Array | undefined;
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly positions: Int32Array;
  readonly sequences: Int32Array;
}

export interface RopeStoreShape {
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly rotated: number;
  readonly capacity: number;
}

/** Queries in place, keys and values to [sequence, position] of the cache; see the operation `ropeStore`. */
export function ropeStore(arrays: RopeStoreArrays, shape: RopeStoreShape): void {
  const { q, k, v, rope, keys, values, positions, sequences } = arrays;
  const { rows, heads, kvHeads, headSize, rotated, capacity } = shape;
  const kvSize = kvHeads * headSize;
  for (let row = 0; row < rows; row++) {
    const at = (sequences[row] * capacity + positions[row]) * kvSize;
    keys.set(k.subarray(row * kvSize, (row + 1) * kvSize), at);
    values.set(v.subarray(row * kvSize, (row + 1) * kvSize), at);
    if (!rope) continue;
    const table = rope.subarray(row * rotated, (row + 1) * rotated);
    for (let h = 0; h < heads; h++) {
      rotateHead(q.subarray((row * heads + h) * headSize, (row * heads + h + 1) * headSize), table, rotated);
    }
    for (let h = 0; h < kvHeads; h++) {
      rotateHead(keys.subarray(at + h * headSize, at + (h + 1) * headSize), table, rotated);
    }
  }
}
