// Codes that index tables in memory, read a pair of values at a time. Places are written well before they are read:
// read at once they are a sixth slower.

import { lastFields, windows } from "./fields.as";
import { BITS, FIRST, MASK, ONE, POWERS, REST, SPREAD, TABLE } from "./plan.as";

export function decodeTrellisTable(part: usize, tile: usize, tiles: i32, to: usize, spare: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const first = v128.load(part, FIRST);
  const rest = v128.load(part, REST);
  const powers = v128.load(part, POWERS);
  const one = v128.load(part, ONE);
  const mask = v128.load(part, MASK);
  const shift = load<i32>(part, SPREAD);
  const table = <usize>load<u32>(part, TABLE);
  let index = spare;
  for (let left = tiles; left; left--) {
    for (let i: usize = 0; i < 256; i += 16) {
      const v = i == 240 ? lastFields(part, tile - 15 * k, k) : v128.load(tile);
      const x = windows(v, first, rest, powers);
      // The table's entries are two bytes: the lowest bit of an offset is 0.
      v128.store(index + i, v128.and(i16x8.shr_u(i16x8.mul(x, i16x8.add(x, one)), shift), mask));
      tile += k;
    }
    index += 256;
  }
  lookUpTiles(table, spare, tiles, to);
}

export function decodePairs(part: usize, tile: usize, tiles: i32, to: usize, spare: usize, wide: bool): void {
  const k = <usize>load<i32>(part, BITS);
  const table = <usize>load<u32>(part, TABLE);
  if (k == 8) {
    for (const stop = to + (<usize>tiles << 9); to < stop; to += 32, tile += 8) {
      store<u64>(to, twoEntries(table, load<u8>(tile), load<u8>(tile, 1)));
      store<u64>(to, twoEntries(table, load<u8>(tile, 2), load<u8>(tile, 3)), 8);
      store<u64>(to, twoEntries(table, load<u8>(tile, 4), load<u8>(tile, 5)), 16);
      store<u64>(to, twoEntries(table, load<u8>(tile, 6), load<u8>(tile, 7)), 24);
    }
    return;
  }
  const first = v128.load(part, FIRST);
  const rest = v128.load(part, REST);
  const powers = v128.load(part, POWERS);
  const mask = v128.load(part, MASK);
  const end = <usize>tiles << 8;
  for (let i: usize = 0; i < end; i += 16) {
    const x = windows(v128.load(tile), first, rest, powers);
    v128.store(spare + i, v128.and(wide ? x : i16x8.shl(x, 1), mask));
    tile += k;
  }
  if (wide) {
    for (let i: usize = 0; i < end; i += 16) {
      lookUp32(table, spare + i, to);
      to += 32;
    }
  } else lookUpTiles(table, spare, tiles, to);
}

/** A pair of bytes for each of eight rows. */
// @ts-ignore: decorator
@inline
function lookUp16(table: usize, index: usize, to: usize): void {
  store<u16>(to, load<u16>(table + load<u16>(index)));
  store<u16>(to, load<u16>(table + load<u16>(index, 2)), 4);
  store<u16>(to, load<u16>(table + load<u16>(index, 4)), 8);
  store<u16>(to, load<u16>(table + load<u16>(index, 6)), 12);
  store<u16>(to, load<u16>(table + load<u16>(index, 8)), 16);
  store<u16>(to, load<u16>(table + load<u16>(index, 10)), 20);
  store<u16>(to, load<u16>(table + load<u16>(index, 12)), 24);
  store<u16>(to, load<u16>(table + load<u16>(index, 14)), 28);
}

function lookUpTiles(table: usize, index: usize, tiles: i32, to: usize): void {
  for (const stop = to + (<usize>tiles << 8); to < stop; to += 64) {
    lookUp16(table, index, to);
    lookUp16(table, index + 16, to + 32);
    lookUp16(table, index + 32, to + 2);
    lookUp16(table, index + 48, to + 34);
    index += 64;
  }
}

/** A pair of 16 bits for each of eight rows. */
// @ts-ignore: decorator
@inline
function lookUp32(table: usize, index: usize, to: usize): void {
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index) << 2)));
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 2) << 2)), 4);
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 4) << 2)), 8);
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 6) << 2)), 12);
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 8) << 2)), 16);
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 10) << 2)), 20);
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 12) << 2)), 24);
  store<u32>(to, load<u32>(table + (<usize>load<u16>(index, 14) << 2)), 28);
}

/** Two entries. Reading both codes before either entry is a tenth faster. */
// @ts-ignore: decorator
@inline
function twoEntries(table: usize, a: u32, b: u32): u64 {
  return <u64>load<u32>(table + (a << 2)) | (<u64>load<u32>(table + (b << 2)) << 32);
}
