/**
 * Any product of integer matrices by any pair of bit partitions, in plain TypeScript: what every strategy is tested
 * against, to the last integer.
 *
 * @module
 */
import { type BitPartition, decompose, type Operand, shiftsOf } from "./partition.ts";

/** Rows of x, rows of w, and the columns that both have. */
export interface ProductSize {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** How both operands are decomposed. */
export interface PartitionPair {
  readonly weights: BitPartition;
  readonly activations: BitPartition;
}

/** One product of a part of the activations with a part of the weights, equation 6: exact, [m, n]. */
function partialProduct(x: Operand, w: Operand, size: ProductSize, from = 0, to = size.k): Float64Array {
  const { m, n, k } = size;
  const y = new Float64Array(m * n);
  for (let row = 0; row < m; row++) {
    for (let column = 0; column < n; column++) {
      let sum = 0;
      for (let i = from; i < to; i++) sum += x.values[row * k + i] * w.values[column * k + i];
      y[row * n + column] = sum;
    }
  }
  return y;
}

/**
 * y = x . w^T over columns [from, to), equation 7: the partial products of all pairs of parts, shifted and added.
 * Float64Array [m, n] of integers (exact below 2^53).
 */
export function dprProduct(
  x: Operand,
  w: Operand,
  { weights, activations }: PartitionPair,
  size: ProductSize,
  from = 0,
  to = size.k,
): Float64Array {
  const y = new Float64Array(size.m * size.n);
  const shiftsX = shiftsOf(activations);
  const shiftsW = shiftsOf(weights);
  const partsW = decompose(w, weights);
  for (const [s, xs] of decompose(x, activations).entries()) {
    for (const [t, wt] of partsW.entries()) {
      const scale = 2 ** (shiftsX[s] + shiftsW[t]);
      partialProduct(xs, wt, size, from, to).forEach((value, i) => {
        y[i] += value * scale;
      });
    }
  }
  return y;
}

/** Scales of an operand's rows: one each, or one for every group of columns. */
export interface Scales {
  /** [rows] or [rows, groups]. */
  readonly values: ArrayLike<number>;
  /** Columns of a group; absent where a row has one scale. */
  readonly group?: number;
}

/**
 * Reconstruction with dequantization: sums over the columns between two changes of scale are integers, each is scaled
 * and added. [m, n]
 */
export function scaledProduct(
  x: Operand,
  xScales: Scales,
  w: Operand,
  wScales: Scales,
  partitions: PartitionPair,
  size: ProductSize,
): Float64Array {
  const { m, n, k } = size;
  const y = new Float64Array(m * n);
  const step = Math.min(xScales.group ?? k, wScales.group ?? k);
  const scaleAt = ({ values, group }: Scales, row: number, column: number) =>
    group ? values[row * Math.ceil(k / group) + Math.floor(column / group)] : values[row];
  for (let from = 0; from < k; from += step) {
    const product = dprProduct(x, w, partitions, size, from, Math.min(k, from + step));
    product.forEach((value, i) => {
      y[i] += value * scaleAt(xScales, Math.floor(i / n), from) * scaleAt(wScales, i % n, from);
    });
  }
  return y;
}
