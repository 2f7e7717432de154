/**
 * Scalar quantizers: every weight by itself becomes the nearest of 2^bits levels.
 *
 * @module
 */
import { packCodes, packedRowBytes, unpackCodes } from "./packing.ts";
import { type EncodeOptions, encodeMatrix, type QuantizedMatrix, type Quantizer } from "./quantizer.ts";
import { leastSquaresScale } from "./scale.ts";
import type { Scheme } from "./scheme.ts";

/** Values are bucketed this finely, so that the nearest level takes one look-up and mostly one comparison. */
const BUCKETS = 4096;

export class ScalarQuantizer implements Quantizer {
  readonly scheme: Scheme;
  readonly blockColumns = 1;
  readonly blockRows = 1;
  /** The 2^bits levels, ascending. */
  readonly levels: Float32Array;
  /** thresholds[c]: from here on the next level is nearer than level c. */
  readonly #thresholds: Float32Array;
  /** The code of each bucket's lower edge. */
  readonly #firstCode: Uint8Array;
  readonly #bucketsPerUnit: number;
  /** Standard deviation, in units of the levels, of the Gaussian the levels are best for. */
  readonly #deviation: number;

  constructor(scheme: Scheme, levels: Float32Array, deviation: number) {
    const last = levels.length - 1;
    this.scheme = scheme;
    this.levels = levels;
    this.#deviation = deviation;
    this.#thresholds = Float32Array.from(levels, (level, c) =>
      c < last ? (level + levels[c + 1]) / 2 : Infinity,
    );
    this.#bucketsPerUnit = BUCKETS / (2 * levels[last]);
    this.#firstCode = new Uint8Array(BUCKETS);
    for (let bucket = 0, code = 0; bucket < BUCKETS; bucket++) {
      // Half a bucket below its edge: rounding never starts the search too high.
      const edge = (bucket - 0.5) / this.#bucketsPerUnit - levels[last];
      while (edge > this.#thresholds[code]) code++;
      this.#firstCode[bucket] = code;
    }
  }

  codesByteLength(rows: number, columns: number): number {
    return rows * packedRowBytes(columns, this.scheme.bits);
  }

  scaleOf(row: Float32Array): number {
    const codes = new Uint8Array(row.length);
    return leastSquaresScale(row, this.#deviation, (inverseScale) => {
      this.#round(row, inverseScale, codes);
      let product = 0;
      let power = 0;
      for (let i = 0; i < row.length; i++) {
        const level = this.levels[codes[i]];
        product += row[i] * level;
        power += level * level;
      }
      return { product, power };
    });
  }

  encodeColumns(
    values: Float32Array,
    rows: number,
    column: number,
    width: number,
    codes: Uint8Array,
    columns: number,
  ): void {
    const { bits } = this.scheme;
    const rowBytes = packedRowBytes(columns, bits);
    const rowCodes = new Uint8Array(width);
    for (let row = 0; row < rows; row++) {
      const block = values.subarray(row * width, (row + 1) * width);
      this.#round(block, 1, rowCodes);
      for (let i = 0; i < width; i++) block[i] = this.levels[rowCodes[i]];
      packCodes(rowCodes, bits, codes, row * rowBytes, column * bits);
    }
  }

  encode(weights: Float32Array, rows: number, columns: number, options?: EncodeOptions): QuantizedMatrix {
    return encodeMatrix(this, weights, rows, columns, options);
  }

  decode({ rows, columns, codes, scales }: QuantizedMatrix): Float32Array {
    const rowBytes = packedRowBytes(columns, this.scheme.bits);
    const rowCodes = new Uint8Array(columns);
    const values = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) {
      unpackCodes(codes, this.scheme.bits, rowCodes, row * rowBytes);
      const to = row * columns;
      for (let i = 0; i < columns; i++) values[to + i] = scales[row] * this.levels[rowCodes[i]];
    }
    return values;
  }

  /** codes[i] <- the level nearest to values[i] * factor. */
  #round(values: Float32Array, factor: number, codes: Uint8Array): void {
    const thresholds = this.#thresholds;
    const firstCode = this.#firstCode;
    const slope = this.#bucketsPerUnit;
    for (let i = 0; i < values.length; i++) {
      const value = values[i] * factor;
      const place = value * slope + BUCKETS / 2;
      let code = firstCode[place < 0 ? 0 : place >= BUCKETS ? BUCKETS - 1 : place | 0];
      while (value > thresholds[code]) code++;
      codes[i] = code;
    }
  }
}
