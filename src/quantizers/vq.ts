/**
 * Two-dimensional vector quantization (Q-Palette, section C.2): every pair of neighbouring columns becomes the
 * nearest of 2^(2 bits) points. An odd last column takes the point with the nearest first coordinate.
 *
 * @module
 */
import { vqPoints, vqUnit } from "./codebooks/vq.ts";
import { NearestPoint } from "./nearest.ts";
import { packCodes, packedRowBytes, unpackCodes } from "./packing.ts";
import { type EncodeOptions, encodeMatrix, type QuantizedMatrix, type Quantizer } from "./quantizer.ts";
import { leastSquaresScale } from "./scale.ts";
import type { Scheme } from "./scheme.ts";

/**
 * By bits, the step of which a small codebook's coordinates are multiples, at most 63 of them, so that products with
 * int8 activations are exact. Searched for the least error: 0.01, 0.03, 0.1 and 0.16% above the points as stored.
 */
export const vqSteps: Readonly<Record<number, number>> = {
  1.5: 0.0256664,
  2: 0.0327234,
  2.5: 0.0376916,
  3: 0.0433245,
};

/** The codebook of 2^(2 bits) points for the unit Gaussian, x0, y0, x1, y1, ...; bits from 1.5 to 6. */
export function vqCodebook(bits: number): Float32Array {
  const bytes = Uint8Array.from(atob(vqPoints[2 * bits]), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const points = Float32Array.from(
    { length: bytes.length / 2 },
    (_, i) => view.getInt16(2 * i, true) * vqUnit,
  );
  const step = vqSteps[bits];
  return step ? points.map((value) => Math.round(value / step) * step) : points;
}

export function vqQuantizer(scheme: Scheme): Quantizer {
  return new VectorQuantizer(scheme);
}

class VectorQuantizer implements Quantizer {
  readonly scheme: Scheme;
  readonly blockColumns = 2;
  readonly blockRows = 1;
  #codebook: Float32Array | undefined;
  /** Made when first needed: up to a tenth of a second of work. */
  #nearest: NearestPoint | undefined;
  /** Bits of a code, which stands for two weights. */
  readonly #width: number;

  constructor(scheme: Scheme) {
    this.scheme = scheme;
    this.#width = 2 * scheme.bits;
  }

  get #points(): Float32Array {
    this.#codebook ??= vqCodebook(this.scheme.bits);
    return this.#codebook;
  }

  codesByteLength(rows: number, columns: number): number {
    return rows * packedRowBytes(Math.ceil(columns / 2), this.#width);
  }

  scaleOf(row: Float32Array): number {
    const codes = new Uint16Array(Math.ceil(row.length / 2));
    const rounded = new Float32Array(row.length);
    return leastSquaresScale(row, 1, (inverseScale) => {
      for (let i = 0; i < row.length; i++) rounded[i] = row[i] * inverseScale;
      this.#round(rounded, codes);
      let product = 0;
      let power = 0;
      for (let i = 0; i < row.length; i++) {
        product += row[i] * rounded[i];
        power += rounded[i] * rounded[i];
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
    const rowBytes = this.codesByteLength(1, columns);
    const rowCodes = new Uint16Array(Math.ceil(width / 2));
    for (let row = 0; row < rows; row++) {
      this.#round(values.subarray(row * width, (row + 1) * width), rowCodes);
      packCodes(rowCodes, this.#width, codes, row * rowBytes, (column / 2) * this.#width);
    }
  }

  encode(weights: Float32Array, rows: number, columns: number, options?: EncodeOptions): QuantizedMatrix {
    return encodeMatrix(this, weights, rows, columns, options);
  }

  decode({ rows, columns, codes, scales }: QuantizedMatrix): Float32Array {
    const rowBytes = this.codesByteLength(1, columns);
    const rowCodes = new Uint16Array(Math.ceil(columns / 2));
    const values = new Float32Array(rows * columns);
    const points = this.#points;
    for (let row = 0; row < rows; row++) {
      unpackCodes(codes, this.#width, rowCodes, row * rowBytes);
      const to = row * columns;
      for (let i = 0; i < columns; i++) {
        values[to + i] = scales[row] * points[2 * rowCodes[i >>> 1] + (i & 1)];
      }
    }
    return values;
  }

  /** Replaces the pairs of a row by their nearest points. */
  #round(values: Float32Array, codes: Uint16Array): void {
    const points = this.#points;
    this.#nearest ??= new NearestPoint(points);
    const nearest = this.#nearest;
    const pairs = values.length >>> 1;
    for (let pair = 0, i = 0; pair < pairs; pair++, i += 2) {
      const code = nearest.find(values[i], values[i + 1]);
      codes[pair] = code;
      values[i] = points[2 * code];
      values[i + 1] = points[2 * code + 1];
    }
    if (values.length % 2 === 1) {
      codes[pairs] = this.#nearestFirst(values[2 * pairs]);
      values[2 * pairs] = points[2 * codes[pairs]];
    }
  }

  /** The point whose first coordinate is nearest. */
  #nearestFirst(value: number): number {
    let best = 0;
    for (let code = 1; 2 * code < this.#points.length; code++) {
      if (Math.abs(this.#points[2 * code] - value) < Math.abs(this.#points[2 * best] - value)) best = code;
    }
    return best;
  }
}
