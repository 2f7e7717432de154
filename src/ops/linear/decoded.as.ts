// Products by decoding a few rows to floats and multiplying: any scheme whose codes index a table.
// It serves float activations, and every scheme that has no kernel of its own.

import { share } from "../../backends/wasm/parallel.as";
import { floatRows } from "./float.as";
import { NIBBLE_TILES, readBytes, readNibbles } from "./tiles.as";

/** Rows decoded at a time; with 576 columns they fill most of a first-level cache. */
const ROWS = 12;

/**
 * args: x, codes, rowScales, table, out, tokens, rows, columns, bits, dimension, scratch, scratch bytes per thread.
 * A code of `bits` bits names `dimension` consecutive values of the float table.
 */
export function linearDecoded(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const codes = <usize>load<u32>(args, 4);
  const rowScales = <usize>load<u32>(args, 8);
  const table = <usize>load<u32>(args, 12);
  const out = <usize>load<u32>(args, 16);
  const tokens = load<i32>(args, 20);
  const rows = load<i32>(args, 24);
  const columns = load<i32>(args, 28);
  const bits = load<i32>(args, 32);
  const dimension = load<i32>(args, 36);
  const scratch = <usize>load<u32>(args, 40) + <usize>t * load<u32>(args, 44);
  const end = share(rows, t + 1, n, ROWS);
  for (let row = share(rows, t, n, ROWS); row < end; row += ROWS) {
    const count = min(ROWS, end - row);
    for (let k = 0; k < count; k++) {
      decodeRow(
        codes,
        row + k,
        rowScales,
        table,
        scratch + ((<usize>k * columns) << 2),
        columns,
        bits,
        dimension,
      );
    }
    floatRows(x, scratch, out + ((<usize>row) << 2), tokens, count, columns, (<usize>rows) << 2);
  }
}

/** Row `row` of canonical codes as floats. */
export function decodeRow(
  codes: usize,
  row: i32,
  rowScales: usize,
  table: usize,
  target: usize,
  columns: i32,
  bits: i32,
  dimension: i32,
): void {
  const perRow = (columns + dimension - 1) / dimension;
  const source = codes + <usize>row * <usize>((perRow * bits + 7) >> 3);
  const scale = load<f32>(rowScales + ((<usize>row) << 2));
  if (dimension == 1) decodeScalars(source, table, target, columns, bits, scale);
  else decodePairs(source, table, target, columns, bits, scale);
}

function decodeScalars(
  source: usize,
  table: usize,
  target: usize,
  columns: i32,
  bits: i32,
  scale: f32,
): void {
  const mask = (1 << bits) - 1;
  for (let i = 0, bit = 0; i < columns; i++, bit += bits) {
    const code = (load<i32>(source + (bit >> 3)) >>> (bit & 7)) & mask;
    store<f32>(target + ((<usize>i) << 2), scale * load<f32>(table + ((<usize>code) << 2)));
  }
}

function decodePairs(source: usize, table: usize, target: usize, columns: i32, bits: i32, scale: f32): void {
  const mask = (1 << bits) - 1;
  for (let i = 0, bit = 0; i < columns; i += 2, bit += bits) {
    const code = (load<i32>(source + (bit >> 3)) >>> (bit & 7)) & mask;
    const pair = table + ((<usize>code) << 3);
    store<f32>(target + ((<usize>i) << 2), scale * load<f32>(pair));
    if (i + 1 < columns) store<f32>(target + ((<usize>i) << 2), scale * load<f32>(pair, 4), 4);
  }
}

/** args: x, tiles, rowScales, codebook, out, tokens, rows, columns, packing, padded, scratch, scratch bytes per thread */
export function linearTilesFloat(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const tiles = <usize>load<u32>(args, 4);
  const rowScales = <usize>load<u32>(args, 8);
  const codebook = <usize>load<u32>(args, 12);
  const out = <usize>load<u32>(args, 16);
  const tokens = load<i32>(args, 20);
  const rows = load<i32>(args, 24);
  const columns = load<i32>(args, 28);
  const packing = load<i32>(args, 32);
  const padded = load<i32>(args, 36);
  const scratch = <usize>load<u32>(args, 40) + <usize>t * load<u32>(args, 44);
  const end = share(rows, t + 1, n, ROWS);
  for (let row = share(rows, t, n, ROWS); row < end; row += ROWS) {
    const count = min(ROWS, end - row);
    for (let k = row; k < row + count; k++) {
      const scale = load<f32>(rowScales + ((<usize>k) << 2));
      const target = scratch + ((<usize>(k - row) * columns) << 2);
      const lane = (<usize>(k & 15)) << 2;
      if (packing == NIBBLE_TILES)
        readNibbles(tiles + <usize>(k >> 4) * padded * 8 + lane, target, columns, scale, codebook);
      else readBytes(tiles + <usize>(k >> 4) * padded * 16 + lane, target, columns, scale);
    }
    floatRows(x, scratch, out + ((<usize>row) << 2), tokens, count, columns, (<usize>rows) << 2);
  }
}
