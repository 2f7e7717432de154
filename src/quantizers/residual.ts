/**
 * How residuals W - Q(W) are stored: few bits each, one scale per output channel (DecDEC, section 4.2), the codes of
 * one input channel side by side so that a channel is one read.
 *
 * @module
 */
import { fromFloat32, toFloat32 } from "../checkpoint/dtype.ts";
import { quantizerFor } from "./registry.ts";
import type { ScalarQuantizer } from "./scalar.ts";
import { parseScheme } from "./scheme.ts";

/** Bits of a residual value; 16 are halfs without a scale. */
export const RESIDUAL_BITS = [2, 4, 8, 16] as const;
export type ResidualBits = (typeof RESIDUAL_BITS)[number];

/** Kernels read rows in steps of this many output channels; rows are padded to whole steps. */
export const ROW_STEP = 64;

/** Bytes of a vector: within one, byte i holds the codes of channels i, i + 16, ... from its low bits up. */
const VECTOR = 16;

export interface EncodedResidual {
  /** [columns, residualRowBytes(rows)]: a row per input channel. */
  readonly codes: Uint8Array;
  /** [rows]: one scale per output channel; ones for 16 bits. */
  readonly scales: Float32Array;
}

/** Bytes that one input channel takes for `rows` output channels. */
export function residualRowBytes(rows: number, bits: ResidualBits): number {
  return (Math.ceil(rows / ROW_STEP) * ROW_STEP * bits) / 8;
}

/**
 * Encodes a residual [rows, columns]. Code c of b bits stands for scale * (c - (2^b - 1) / 2); each scale is the one
 * of least squared error among several, see {@link ScalarQuantizer.scaleOf}.
 */
export function encodeResidual(
  residual: Float32Array,
  rows: number,
  columns: number,
  bits: ResidualBits,
): EncodedResidual {
  const rowBytes = residualRowBytes(rows, bits);
  const codes = new Uint8Array(columns * rowBytes);
  const scales = new Float32Array(rows).fill(1);
  const quantizer = bits === 16 ? undefined : uniform(bits);
  for (let row = 0; row < rows; row++) {
    const values = residual.subarray(row * columns, (row + 1) * columns);
    if (bits === 16) {
      const halfs = fromFloat32("F16", values);
      for (let column = 0; column < columns; column++) {
        codes.set(halfs.subarray(2 * column, 2 * column + 2), column * rowBytes + 2 * row);
      }
      continue;
    }
    // No level is zero: a row without residual has no scale.
    scales[row] = values.some((value) => value !== 0) ? quantizer!.scaleOf(values) : 0;
    if (scales[row] === 0) continue;
    const [place, shift] = placeOf(row, bits);
    const inverse = 1 / scales[row];
    const middle = (2 ** bits - 1) / 2;
    for (let column = 0; column < columns; column++) {
      const code = Math.round(values[column] * inverse + middle);
      codes[column * rowBytes + place] |= Math.min(2 ** bits - 1, Math.max(0, code)) << shift;
    }
  }
  return { codes, scales };
}

/** The float values [rows, columns] that codes and scales stand for. */
export function decodeResidual(
  { codes, scales }: EncodedResidual,
  rows: number,
  columns: number,
  bits: ResidualBits,
): Float32Array {
  const rowBytes = residualRowBytes(rows, bits);
  const values = new Float32Array(rows * columns);
  if (bits === 16) {
    const channel = new Float32Array(rows);
    for (let column = 0; column < columns; column++) {
      toFloat32("F16", codes.subarray(column * rowBytes, column * rowBytes + 2 * rows), channel);
      for (let row = 0; row < rows; row++) values[row * columns + column] = channel[row];
    }
    return values;
  }
  const middle = (2 ** bits - 1) / 2;
  for (let row = 0; row < rows; row++) {
    const [place, shift] = placeOf(row, bits);
    for (let column = 0; column < columns; column++) {
      const code = (codes[column * rowBytes + place] >> shift) & (2 ** bits - 1);
      values[row * columns + column] = scales[row] * (code - middle);
    }
  }
  return values;
}

/** Byte within a row, and bit within the byte, of an output channel's code. */
function placeOf(row: number, bits: 2 | 4 | 8): [place: number, shift: number] {
  const perVector = (VECTOR * 8) / bits;
  const inVector = row % perVector;
  const place = Math.floor(row / perVector) * VECTOR + (inVector % VECTOR);
  return [place, Math.floor(inVector / VECTOR) * bits];
}

function uniform(bits: 2 | 4 | 8): ScalarQuantizer {
  return quantizerFor(parseScheme(`uniform-${bits}`)) as ScalarQuantizer;
}
