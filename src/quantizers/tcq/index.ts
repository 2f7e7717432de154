/**
 * Trellis-coded quantizers of 1.5 to 5 bits in quarter steps: `tcq-B` with the paper's table code, `tcq-s-B` with
 * the swizzle-sum code.
 *
 * @module
 */
import { UsageError } from "../../errors.ts";
import type { QuantizedMatrix, Quantizer } from "../quantizer.ts";
import { encodeMatrix, rootMeanSquare } from "../quantizer.ts";
import type { Scheme } from "../scheme.ts";
import type { TrellisCode } from "./code.ts";
import { trellisCode } from "./code.ts";
import type { TileEncoder } from "./encoder.ts";
import { createTileEncoder } from "./encoder.ts";
import {
  packStates,
  TILE_SIDE,
  TILE_STEPS,
  TILE_WEIGHTS,
  tileLayout,
  tilePlace,
  unpackStates,
} from "./trellis.ts";

/**
 * The quantizer of a `tcq` or `tcq-s` scheme. Its codes are bands of 16 rows of 16 x 16 tiles (see `trellis.ts`;
 * ragged edges are padded with zeros), a row's scale its root mean square. Bands are independent: a matrix may be
 * encoded in bands of 16 rows by any number of workers, each with a quantizer of its own, to the same bytes.
 *
 * @param beam see {@link createTileEncoder}.
 */
export function tcqQuantizer(scheme: Scheme, beam = 0): Quantizer {
  const { family, bits } = scheme;
  if (family !== "tcq" && family !== "tcq-s")
    throw new UsageError(`${scheme.name} is no trellis-coded scheme`);
  let encoder: TileEncoder | undefined;
  const codes = new Map<number, TrellisCode>();
  const codeAt = (rate: number): TrellisCode => {
    const code = codes.get(rate) ?? trellisCode(family, rate);
    codes.set(rate, code);
    return code;
  };
  const quantizer: Omit<Quantizer, "encode" | "decode"> = {
    scheme,
    blockColumns: TILE_SIDE,
    blockRows: TILE_SIDE,
    codesByteLength: (rows, columns) => Math.ceil(rows / TILE_SIDE) * tileLayout(bits, columns).bandBytes,
    scaleOf: (row) => rootMeanSquare(row) || 1,
    encodeColumns(values, rows, column, width, target, columns) {
      encoder ??= createTileEncoder(beam);
      encodeTiles(encoder, codeAt, bits, { values, rows, column, width, codes: target, columns });
    },
  };
  return {
    ...quantizer,
    encode: (weights, rows, columns, options) => encodeMatrix(quantizer, weights, rows, columns, options),
    decode: (matrix) => decodeTiles(codeAt, bits, matrix),
  };
}

interface Block {
  readonly values: Float32Array;
  readonly rows: number;
  readonly column: number;
  readonly width: number;
  readonly codes: Uint8Array;
  readonly columns: number;
}

/** Encodes the tiles of a block of columns, tile column by tile column so that the rate changes once at most. */
function encodeTiles(
  encoder: TileEncoder,
  codeAt: (rate: number) => TrellisCode,
  bits: number,
  block: Block,
): void {
  const { values, rows, column, width, codes, columns } = block;
  const layout = tileLayout(bits, columns);
  const tile = new Float32Array(TILE_WEIGHTS);
  for (let left = 0; left < width; left += TILE_SIDE) {
    const { rate, offset } = tilePlace(layout, (column + left) / TILE_SIDE);
    const code = codeAt(rate);
    const { pairs, unit } = code;
    for (let top = 0; top < rows; top += TILE_SIDE) {
      const place = (i: number) => placeOf(i, top, left, rows, width);
      for (let i = 0; i < TILE_WEIGHTS; i++) {
        const at = place(i);
        tile[i] = at < 0 ? 0 : values[at];
      }
      const states = encoder.encode(tile, code);
      packStates(states, rate, codes, (top / TILE_SIDE) * layout.bandBytes + offset);
      for (let i = 0; i < TILE_WEIGHTS; i++) {
        const at = place(i);
        if (at >= 0) values[at] = pairs[2 * states[i >> 1] + (i & 1)] * unit;
      }
    }
  }
}

/** Where weight `i` of a tile's sequence lies in a row-major block, or -1 beyond its edges. */
function placeOf(i: number, top: number, left: number, rows: number, width: number): number {
  const row = top + ((i >> 1) % TILE_SIDE);
  const column = left + 2 * (i >> 5) + (i & 1);
  return row < rows && column < width ? row * width + column : -1;
}

function decodeTiles(
  codeAt: (rate: number) => TrellisCode,
  bits: number,
  { rows, columns, codes, scales }: QuantizedMatrix,
): Float32Array {
  const layout = tileLayout(bits, columns);
  const weights = new Float32Array(rows * columns);
  const states = new Uint16Array(TILE_STEPS);
  for (let tile = 0; tile < layout.tiles; tile++) {
    const { rate, offset } = tilePlace(layout, tile);
    const { pairs, unit } = codeAt(rate);
    const left = tile * TILE_SIDE;
    const pairColumns = Math.min(TILE_SIDE, columns - left);
    for (let top = 0; top < rows; top += TILE_SIDE) {
      unpackStates(codes, rate, (top / TILE_SIDE) * layout.bandBytes + offset, states);
      const bottom = Math.min(top + TILE_SIDE, rows);
      for (let row = top; row < bottom; row++) {
        const scale = scales[row] * unit;
        const to = row * columns + left;
        for (let column = 0; column < pairColumns; column++) {
          const state = states[(column >> 1) * TILE_SIDE + row - top];
          weights[to + column] = pairs[2 * state + (column & 1)] * scale;
        }
      }
    }
  }
  return weights;
}
