/**
 * The feedback of block LDLQ: the Hessian's factor H = L D L^T.
 *
 * @module
 */
import { UsageError } from "../errors.ts";

/** Columns [column, column + width) of the matrix: one block of the quantizer. */
export interface ColumnBlock {
  readonly column: number;
  readonly width: number;
}

/** Computed once for all weights that share an input. */
export interface LdlqFactor {
  readonly columns: number;
  readonly blockColumns: number;
  /** In order of position; positions are rounded from the last to the first. */
  readonly blocks: readonly ColumnBlock[];
  /**
   * The unit lower block triangular L by position, row-major [columns, columns]; only entries left of the
   * diagonal blocks are meant.
   */
  readonly feedback: Float32Array;
  /** trace D / trace H: what feedback leaves of the weighted error of plain rounding. */
  readonly gain: number;
}

export interface FactorOptions {
  /** Added to the diagonal, as a share of its mean; .01 when not given. */
  readonly damping?: number;
  /** Round the blocks with the largest diagonal first, so that later ones can make up for their errors. */
  readonly activationOrder?: boolean;
}

/**
 * Factors a proxy Hessian E[x x^T] [columns, columns] for a quantizer that rounds `blockColumns` at a time.
 * Throws a UsageError when the damped matrix is not positive definite.
 */
export function factorHessian(
  hessian: Float32Array | Float64Array,
  columns: number,
  blockColumns: number,
  options: FactorOptions = {},
): LdlqFactor {
  if (hessian.length !== columns * columns) {
    throw new UsageError(`a Hessian of ${hessian.length} values does not fit ${columns} columns`);
  }
  const { damping = 0.01, activationOrder = false } = options;
  const blocks: ColumnBlock[] = [];
  for (let column = 0; column < columns; column += blockColumns) {
    blocks.push({ column, width: Math.min(blockColumns, columns - column) });
  }
  if (activationOrder) {
    const weight = ({ column, width }: ColumnBlock) => {
      let sum = 0;
      for (let c = column; c < column + width; c++) sum += hessian[c * columns + c];
      return sum / width;
    };
    blocks.sort((a, b) => weight(a) - weight(b) || a.column - b.column);
  }
  const order = blocks.flatMap(({ column, width }) => Array.from({ length: width }, (_, i) => column + i));

  let trace = 0;
  for (let c = 0; c < columns; c++) trace += hessian[c * columns + c];
  // A Hessian of zeros (an input never used) leaves plain rounding.
  const added = trace === 0 ? 1 : (damping * trace) / columns;
  const matrix = new Float32Array(columns * columns);
  for (let i = 0; i < columns; i++) {
    for (let j = 0; j <= i; j++) matrix[i * columns + j] = hessian[order[i] * columns + order[j]];
    matrix[i * columns + i] += added;
  }
  const failed = choleskyInPlace(matrix, columns);
  if (failed >= 0) {
    throw new UsageError(
      `the Hessian is not positive definite at column ${order[failed]} with damping ${damping}; ` +
        "calibrate with more tokens or raise the damping",
    );
  }
  const gain = trace === 0 ? 1 : diagonalBlockTrace(matrix, columns, blocks) / (trace + added * columns);
  divideByDiagonalBlocks(matrix, columns, blocks);
  return { columns, blockColumns, blocks, feedback: matrix, gain };
}

/** The trace of D, whose blocks are C_kk C_kk^T of Cholesky's C. */
function diagonalBlockTrace(c: Float32Array, n: number, blocks: readonly ColumnBlock[]): number {
  let trace = 0;
  let start = 0;
  for (const { width } of blocks) {
    for (let i = start; i < start + width; i++) {
      for (let j = start; j <= i; j++) trace += c[i * n + j] ** 2;
    }
    start += width;
  }
  return trace;
}

/** Columns of the Cholesky factor computed at a time: their rows stay in the second-level cache. */
const PANEL = 48;

/**
 * The Cholesky factor of a symmetric matrix [n, n], of which the lower triangle is given and replaced.
 * Returns the row where a pivot is not positive, or -1.
 */
export function choleskyInPlace(a: Float32Array, n: number): number {
  const products = new Float64Array(PANEL);
  for (let first = 0; first < n; first += PANEL) {
    const last = Math.min(first + PANEL, n);
    for (let i = first; i < n; i++) {
      const end = Math.min(last, i + 1);
      dotRows(a, n, i, first, end, products);
      for (let j = first; j < end; j++) {
        let sum = a[i * n + j] - products[j - first];
        for (let k = first; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
        if (i > j) a[i * n + j] = sum / a[j * n + j];
        else if (sum > 0) a[i * n + i] = Math.sqrt(sum);
        else return i;
      }
    }
  }
  return -1;
}

/** products[j - from] <- row i . row j over the first `from` columns, for j in [from, to); four rows at a time. */
function dotRows(
  a: Float32Array,
  n: number,
  i: number,
  from: number,
  to: number,
  products: Float64Array,
): void {
  const row = i * n;
  let j = from;
  for (; j + 4 <= to; j += 4) {
    const [r0, r1, r2, r3] = [j * n, (j + 1) * n, (j + 2) * n, (j + 3) * n];
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    for (let k = 0; k < from; k++) {
      const x = a[row + k];
      s0 += x * a[r0 + k];
      s1 += x * a[r1 + k];
      s2 += x * a[r2 + k];
      s3 += x * a[r3 + k];
    }
    products[j - from] = s0;
    products[j - from + 1] = s1;
    products[j - from + 2] = s2;
    products[j - from + 3] = s3;
  }
  for (; j < to; j++) {
    let sum = 0;
    for (let k = 0; k < from; k++) sum += a[row + k] * a[j * n + k];
    products[j - from] = sum;
  }
}

/** Cholesky's C becomes L = C diag(C)^-1 with the diagonal blocks C_kk: solves x C_kk = C_jk for every row below. */
function divideByDiagonalBlocks(c: Float32Array, n: number, blocks: readonly ColumnBlock[]): void {
  let start = 0;
  for (const { width } of blocks) {
    const end = start + width;
    for (let row = end; row < n; row++) {
      for (let k = end - 1; k >= start; k--) {
        let sum = c[row * n + k];
        for (let d = k + 1; d < end; d++) sum -= c[row * n + d] * c[d * n + k];
        c[row * n + k] = sum / c[k * n + k];
      }
    }
    start = end;
  }
}
