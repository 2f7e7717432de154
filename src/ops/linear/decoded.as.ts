// Products of quantized weights with float activations: a panel of 16 rows by a block of columns is decoded to floats in
// a first-level cache, once for all tokens.

import { madd } from "../../backends/wasm/math.as";
import { share } from "../../backends/wasm/parallel.as";
import { decodeTiles } from "./fieldTiles.as";
import { addPanel, BLOCK, PANEL_BYTES, PANEL_ROWS, PANEL_STRIDE } from "./floatTile.as";
import { decodeNibbles } from "./nibbleInt8.as";
import { isWide, offsetOf, PART, tileBytes, unitOf } from "./plan.as";
import { BYTE_OFFSET, NIBBLE_TILES } from "./tiles.as";
import { storeTile } from "./tileProducts.as";

/** Columns of a tile, and what is decoded at a time. */
const SIDE = 16;
const TILES = 8;
/** A decoder's spare bytes, and the integers of so many tiles. */
const SPARE: usize = 2048;
const DECODED: usize = 32 * TILES * SIDE;

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
  const nibbles = load<i32>(args, 32) == NIBBLE_TILES;
  const padded = load<i32>(args, 36);
  const decoded = <usize>load<u32>(args, 40) + <usize>t * load<u32>(args, 44);
  const panel = decoded + BLOCK * PANEL_ROWS;
  const f = panel + PANEL_BYTES;
  const columnBytes: usize = nibbles ? 8 : 16;
  const end = share(rows, t + 1, n, PANEL_ROWS);
  for (let row = share(rows, t, n, PANEL_ROWS); row < end; row += PANEL_ROWS) {
    const band = tiles + <usize>(row / PANEL_ROWS) * padded * columnBytes;
    memory.fill(f, 0, <usize>tokens << 6);
    for (let first = 0; first < columns; first += BLOCK) {
      const width = min(BLOCK, padded - first);
      let bytes = band + <usize>first * columnBytes;
      if (nibbles) {
        decodeNibbles(bytes, decoded, width >> 3, v128.load(codebook));
        bytes = decoded;
      }
      bytesToPanel(bytes, panel, width, 1, nibbles ? 64 : BYTE_OFFSET);
      addPanel(
        x + (<usize>first << 2), <usize>columns << 2, tokens, panel, PANEL_STRIDE, min(BLOCK, columns - first), f,
      );
    }
    storeTile(f, out + (<usize>row << 2), tokens, <usize>rows << 2, rowScales + (<usize>row << 2), end - row);
  }
}

/** args: x, tiles, rowScales, plan, out, tokens, rows, columns, lowTiles, scratch, scratch bytes per thread */
export function linearFieldsFloat(args: usize, t: i32, n: i32): void {
  const x = <usize>load<u32>(args);
  const weights = <usize>load<u32>(args, 4);
  const rowScales = <usize>load<u32>(args, 8);
  const plan = <usize>load<u32>(args, 12);
  const out = <usize>load<u32>(args, 16);
  const tokens = load<i32>(args, 20);
  const rows = load<i32>(args, 24);
  const columns = load<i32>(args, 28);
  const lowTiles = load<i32>(args, 32);
  const spare = <usize>load<u32>(args, 36) + <usize>t * load<u32>(args, 40);
  const decoded = spare + SPARE;
  const panel = decoded + DECODED;
  const f = panel + PANEL_BYTES;
  const tiles = (columns + SIDE - 1) / SIDE;
  const bandBytes = tileBytes(plan) * lowTiles + tileBytes(plan + PART) * (tiles - lowTiles);
  const end = share(rows, t + 1, n, PANEL_ROWS);
  for (let row = share(rows, t, n, PANEL_ROWS); row < end; row += PANEL_ROWS) {
    let at = weights + <usize>(row / PANEL_ROWS) * bandBytes;
    memory.fill(f, 0, <usize>tokens << 6);
    for (let first = 0; first < columns; first += BLOCK) {
      let tile = first / SIDE;
      const stop = min(tiles, tile + BLOCK / SIDE);
      let to = panel;
      while (tile < stop) {
        const low = tile < lowTiles;
        const part = low ? plan : plan + PART;
        const count = min(TILES, (low ? min(stop, lowTiles) : stop) - tile);
        decodeTiles(part, at, count, decoded, spare);
        if (isWide(part)) wordsToPanel(decoded, to, count * SIDE, unitOf(part));
        else bytesToPanel(decoded, to, count * SIDE, unitOf(part), offsetOf(part));
        at += tileBytes(part) * count;
        to += <usize>(count * SIDE) << 2;
        tile += count;
      }
      addPanel(
        x + (<usize>first << 2), <usize>columns << 2, tokens, panel, PANEL_STRIDE, min(BLOCK, columns - first), f,
      );
    }
    storeTile(f, out + (<usize>row << 2), tokens, <usize>rows << 2, rowScales + (<usize>row << 2), end - row);
  }
}

/** Bytes as 16 rows x 4 columns, four columns after another, to the floats (byte - offset) * unit of a panel. */
function bytesToPanel(from: usize, panel: usize, columns: i32, unit: f32, offset: f32): void {
  const factor = f32x4.splat(unit);
  const start = f32x4.splat(-offset * unit);
  for (const stop = panel + (<usize>columns << 2); panel < stop; panel += 16) {
    let row = panel;
    for (let v = 0; v < 4; v++) {
      const bytes = v128.load(from);
      const low = i16x8.extend_low_i8x16_u(bytes);
      const high = i16x8.extend_high_i8x16_u(bytes);
      v128.store(row, madd(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_u(low)), factor, start));
      v128.store(row, madd(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_u(low)), factor, start), PANEL_STRIDE);
      v128.store(row, madd(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_u(high)), factor, start), 2 * PANEL_STRIDE);
      v128.store(row, madd(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_u(high)), factor, start), 3 * PANEL_STRIDE);
      from += 16;
      row += 4 * PANEL_STRIDE;
    }
  }
}

/** Words of 16 bits as 16 rows x 2 columns, two columns after another, to the floats word * unit of a panel. */
function wordsToPanel(from: usize, panel: usize, columns: i32, unit: f32): void {
  const factor = f32x4.splat(unit);
  for (const stop = panel + (<usize>columns << 2); panel < stop; panel += 16, from += 64) {
    let row = panel;
    for (let v = 0; v < 4; v++) {
      const left = v128.load(from);
      const right = v128.load(from, 64);
      const low = v128.shuffle<i32>(left, right, 0, 4, 1, 5);
      const high = v128.shuffle<i32>(left, right, 2, 6, 3, 7);
      v128.store(row, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(low)), factor));
      v128.store(row, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(low)), factor), PANEL_STRIDE);
      v128.store(row, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(high)), factor), 2 * PANEL_STRIDE);
      v128.store(row, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(high)), factor), 3 * PANEL_STRIDE);
      from += 16;
      row += 4 * PANEL_STRIDE;
    }
  }
}
