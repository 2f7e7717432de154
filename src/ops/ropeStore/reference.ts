/** Rotates the first `rotated` elements of a head (pairs i, i + rotated / 2), cos and sin in `rope` (Su et al., 2021). */
function rotateHead(x: Float32Array, rope: Float32Array, rotated: number): void {
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

/** Queries in place, keys and values to [sequence, head, position] of the cache; see the operation `ropeStore`. */
export function ropeStore(arrays: RopeStoreArrays, shape: RopeStoreShape): void {
  const { q, k, v, rope, keys, values, positions, sequences } = arrays;
  const { rows, heads, kvHeads, headSize, rotated, capacity } = shape;
  const headOf = (x: Float32Array, index: number) => x.subarray(index * headSize, (index + 1) * headSize);
  for (let row = 0; row < rows; row++) {
    const table = rope?.subarray(row * rotated, (row + 1) * rotated);
    for (let h = 0; h < kvHeads; h++) {
      const place = (sequences[row] * kvHeads + h) * capacity + positions[row];
      const key = headOf(keys, place);
      key.set(headOf(k, row * kvHeads + h));
      if (table) rotateHead(key, table, rotated);
      headOf(values, place).set(headOf(v, row * kvHeads + h));
    }
    if (!table) continue;
    for (let h = 0; h < heads; h++) rotateHead(headOf(q, row * heads + h), table, rotated);
  }
}
