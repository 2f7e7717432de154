// Products with float activations of nibble and byte tiles: a few rows are decoded to floats and multiplied.

import { share } from "../../backends/wasm/parallel.as";
import { floatRows } from "./float.as";
import { BYTE_OFFSET, NIBBLE_TILES, readBytes, readNibbles } from "./tiles.as";

/** Rows decoded at a time; with 576 columns they fill most of a first-level cache. */
const ROWS = 12;

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
      else readBytes(tiles + <usize>(k >> 4) * padded * 16 + lane, target, columns, scale, BYTE_OFFSET);
    }
    floatRows(x, scratch, out + ((<usize>row) << 2), tokens, count, columns, (<usize>rows) << 2);
  }
}
