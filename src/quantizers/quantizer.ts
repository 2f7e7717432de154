/**
 * What every quantizer of the palette does: round a weight matrix to codes with one scale per row, and back.
 *
 * @module
 */
import type { Scheme } from "./scheme.ts";

/** A weight [rows, columns] (output channels first): codes in the canonical packed layout, one scale per row. */
export interface QuantizedMatrix {
  /** Name of the scheme, e.g. `nuq-3`. */
  readonly scheme: string;
  readonly rows: number;
  readonly columns: number;
  readonly codes: Uint8Array;
  /** Length `rows`: weight = scale of its row x decoded unit-scale value. */
  readonly scales: Float32Array;
}

export interface EncodeOptions {
  /** Scales to use instead of the quantizer's own choice, length `rows`. */
  readonly scales?: Float32Array;
}

/**
 * One member of the palette. An implementation supplies {@link scaleOf}, {@link encodeColumns} and
 * {@link decode}; {@link encodeMatrix} does the rest of `encode`, and LDLQ calls `encodeColumns` itself.
 */
export interface Quantizer {
  readonly scheme: Scheme;
  /** Columns that are rounded together, LDLQ's block: 1 for scalars, 2 for 2D vectors, 16 for TCQ tiles. */
  readonly blockColumns: number;
  /** Rows that are rounded together: 16 for TCQ tiles, otherwise 1. */
  readonly blockRows: number;
  /** Bytes of codes of a [rows, columns] matrix. */
  codesByteLength(rows: number, columns: number): number;
  /** The scale of a row, > 0 (1 for a row of zeros), found from its values. */
  scaleOf(row: Float32Array): number;
  /**
   * Rounds columns [column, column + width) of all rows of a matrix.
   *
   * @param values [rows, width], already divided by the row scales; replaced by their reconstruction.
   * @param column a multiple of `blockColumns`.
   * @param width a multiple of `blockColumns`, or up to the matrix's last column.
   * @param codes the codes of the whole [rows, columns] matrix; the bits of these columns must be zero.
   */
  encodeColumns(
    values: Float32Array,
    rows: number,
    column: number,
    width: number,
    codes: Uint8Array,
    columns: number,
  ): void;
  /** Rounds a matrix [rows, columns], row-major. */
  encode(weights: Float32Array, rows: number, columns: number, options?: EncodeOptions): QuantizedMatrix;
  /** The values that codes and scales stand for, float32 [rows, columns]. */
  decode(matrix: QuantizedMatrix): Float32Array;
}

/** The scale of every row of a [rows, columns] matrix. */
export function rowScales(
  quantizer: Pick<Quantizer, "scaleOf">,
  weights: Float32Array,
  rows: number,
  columns: number,
): Float32Array {
  const scales = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    scales[row] = quantizer.scaleOf(weights.subarray(row * columns, (row + 1) * columns));
  }
  return scales;
}

/** Bytes of the float copy that `encodeMatrix` rounds at a time: fits a second-level cache. */
const CHUNK_BYTES = 1 << 20;

/** Rounds a matrix without calibration: every block by itself (the paper's data-free mode). */
export function encodeMatrix(
  quantizer: Omit<Quantizer, "encode" | "decode">,
  weights: Float32Array,
  rows: number,
  columns: number,
  options: EncodeOptions = {},
): QuantizedMatrix {
  const codes = new Uint8Array(quantizer.codesByteLength(rows, columns));
  const scales = options.scales ?? rowScales(quantizer, weights, rows, columns);
  const { blockRows } = quantizer;
  const chunkRows = Math.max(1, Math.floor(CHUNK_BYTES / (4 * Math.max(1, columns) * blockRows))) * blockRows;
  const chunk = new Float32Array(Math.min(chunkRows, rows) * columns);
  for (let start = 0; start < rows; start += chunkRows) {
    const count = Math.min(chunkRows, rows - start);
    const values = chunk.subarray(0, count * columns);
    for (let row = 0; row < count; row++) {
      const inverse = 1 / scales[start + row];
      const from = (start + row) * columns;
      for (let i = 0, to = row * columns; i < columns; i++) values[to + i] = weights[from + i] * inverse;
    }
    // The canonical layouts keep whole groups of blockRows rows contiguous, so a chunk's codes are one range.
    const first = quantizer.codesByteLength(start, columns);
    const last = quantizer.codesByteLength(start + count, columns);
    quantizer.encodeColumns(values, count, 0, columns, codes.subarray(first, last), columns);
  }
  return { scheme: quantizer.scheme.name, rows, columns, codes, scales };
}

/** Root mean square, 0 for an empty row. */
export function rootMeanSquare(values: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * values[i];
  return Math.sqrt(sum / Math.max(1, values.length));
}
