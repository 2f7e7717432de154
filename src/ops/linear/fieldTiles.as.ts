// Tiles of 16 x 16 weights whose codes are one stream of fields of k bits, a field for two neighbouring columns of
// a row, rows first: the trellis' canonical layout (see quantizers/tcq/trellis.ts), and that of every code that is
// repacked so. Decoders write integers: bytes of 7 bits, for four columns after another 16 rows x 4 columns; or,
// where those are too coarse, 16 bits, for two columns after another 16 rows x 2 columns.

/** The constants of a rate, as plan.ts lays them out. A plan holds two: for the first `lowTiles` tiles and the rest. */
export const PART: usize = 256;
const LOW_BYTES: usize = 0;
const HIGH_BYTES: usize = 16;
const LOW_POWERS: usize = 32;
const HIGH_POWERS: usize = 48;
const WRAP: usize = 64;
const KEEP: usize = 80;
const MASK: usize = 96;
const FACTOR: usize = 112;
const LOW: usize = 128;
const HIGH: usize = 144;
const BITS: usize = 160;
const DECODER: usize = 164;
const TABLE: usize = 168;
const SPREAD: usize = 172;
const FOLD: usize = 176;
const UNIT: usize = 180;
const OFFSET: usize = 184;
const SECOND_TABLE: usize = 188;
const EXCESS: usize = 192;
const NIBBLES: usize = 208;
const ONE: usize = 224;

const SWIZZLE_SUM = 0;
const TRELLIS_TABLE = 1;
const UNIFORM = 2;
const LEVELS = 3;
const PAIRS = 4;
const LATTICE = 5;

// @ts-ignore: decorator
@inline
function swizzle(table: v128, index: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, index);
  return i8x16.swizzle(table, index);
}

/** Bytes of a tile's codes. */
// @ts-ignore: decorator
@inline
export function tileBytes(part: usize): usize {
  return <usize>load<i32>(part, BITS) * 16;
}

/** Whether decoded values have 16 bits. */
// @ts-ignore: decorator
@inline
export function isWide(part: usize): bool {
  return load<i32>(part, DECODER) == PAIRS;
}

/** What a decoded step of 1 stands for. */
// @ts-ignore: decorator
@inline
export function unitOf(part: usize): f32 {
  return load<f32>(part, UNIT);
}

/** What stands for zero. */
// @ts-ignore: decorator
@inline
export function offsetOf(part: usize): f32 {
  return load<f32>(part, OFFSET);
}

/** Decodes a tile to 256 bytes or, when wide, 512. `spare`: 256 bytes. */
export function decodeTile(part: usize, tile: usize, to: usize, spare: usize): void {
  const decoder = load<i32>(part, DECODER);
  if (decoder == SWIZZLE_SUM) decodeSwizzleSum(part, tile, to);
  else if (decoder == TRELLIS_TABLE) decodeTrellisTable(part, tile, to, spare);
  else if (decoder == PAIRS) decodePairs(part, tile, to, spare);
  else if (decoder == LATTICE) decodeLattice(part, tile, to);
  else decodeScalars(part, tile, to, decoder == LEVELS);
}

/** 16 bits from each of eight successive fields on. */
// @ts-ignore: decorator
@inline
function windows(v: v128, lowBytes: v128, highBytes: v128, lowPowers: v128, highPowers: v128): v128 {
  // A product by a power of two is a shift of its own for each lane.
  const low = i32x4.shr_u(i32x4.mul(swizzle(v, lowBytes), lowPowers), 16);
  const high = i32x4.shr_u(i32x4.mul(swizzle(v, highBytes), highPowers), 16);
  return i16x8.narrow_i32x4_u(low, high);
}

/** The last eight fields of a tile, followed by the first: a trellis' stream is circular. */
// @ts-ignore: decorator
@inline
function lastFields(part: usize, tile: usize, k: usize): v128 {
  const first = swizzle(v128.load64_zero(tile), v128.load(part, WRAP));
  return v128.or(v128.and(v128.load(tile + 15 * k), v128.load(part, KEEP)), first);
}

/** Eight rows of two pairs of columns, one after another in a vector, to eight rows of four columns. */
// @ts-ignore: decorator
@inline
function storeQuads(to: usize, left: v128, right: v128): void {
  v128.store(to, v128.shuffle<i16>(left, right, 0, 8, 1, 9, 2, 10, 3, 11));
  v128.store(to, v128.shuffle<i16>(left, right, 4, 12, 5, 13, 6, 14, 7, 15), 16);
}

function decodeSwizzleSum(part: usize, tile: usize, to: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const lowBytes = v128.load(part, LOW_BYTES);
  const highBytes = v128.load(part, HIGH_BYTES);
  const lowPowers = v128.load(part, LOW_POWERS);
  const highPowers = v128.load(part, HIGH_POWERS);
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  const spread = load<i32>(part, SPREAD);
  const fold = load<i32>(part, FOLD);
  let at = tile;
  for (let i = 0; i < 8; i++) {
    let x = windows(v128.load(at), lowBytes, highBytes, lowPowers, highPowers);
    let h = i16x8.mul(v128.xor(x, i16x8.shr_u(x, spread)), factor);
    h = v128.xor(h, i16x8.shr_u(h, fold));
    const left = i8x16.add(
      swizzle(low, v128.and(h, nibbles)), swizzle(high, v128.and(i16x8.shr_u(h, 4), nibbles)),
    );
    x = windows(i == 7 ? lastFields(part, tile, k) : v128.load(at + 2 * k), lowBytes, highBytes, lowPowers, highPowers);
    h = i16x8.mul(v128.xor(x, i16x8.shr_u(x, spread)), factor);
    h = v128.xor(h, i16x8.shr_u(h, fold));
    const right = i8x16.add(
      swizzle(low, v128.and(h, nibbles)), swizzle(high, v128.and(i16x8.shr_u(h, 4), nibbles)),
    );
    storeQuads(to, left, right);
    to += 32;
    at += i & 1 ? 3 * k : k;
  }
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

function decodeTrellisTable(part: usize, tile: usize, to: usize, spare: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const lowBytes = v128.load(part, LOW_BYTES);
  const highBytes = v128.load(part, HIGH_BYTES);
  const lowPowers = v128.load(part, LOW_POWERS);
  const highPowers = v128.load(part, HIGH_POWERS);
  const one = v128.load(part, ONE);
  const mask = v128.load(part, MASK);
  const shift = load<i32>(part, SPREAD);
  const table = <usize>load<u32>(part, TABLE);
  let at = tile;
  for (let i: usize = 0; i < 256; i += 16) {
    const v = i == 240 ? lastFields(part, tile, k) : v128.load(at);
    const x = windows(v, lowBytes, highBytes, lowPowers, highPowers);
    // The table's entries are two bytes: the lowest bit of an offset is 0.
    v128.store(spare + i, v128.and(i16x8.shr_u(i16x8.mul(x, i16x8.add(x, one)), shift), mask));
    at += k;
  }
  for (let i: usize = 0; i < 256; i += 64) {
    const index = spare + i;
    lookUp16(table, index, to);
    lookUp16(table, index + 16, to + 32);
    lookUp16(table, index + 32, to + 2);
    lookUp16(table, index + 48, to + 34);
    to += 64;
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

function decodePairs(part: usize, tile: usize, to: usize, spare: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const lowBytes = v128.load(part, LOW_BYTES);
  const highBytes = v128.load(part, HIGH_BYTES);
  const lowPowers = v128.load(part, LOW_POWERS);
  const highPowers = v128.load(part, HIGH_POWERS);
  const mask = v128.load(part, MASK);
  const table = <usize>load<u32>(part, TABLE);
  for (let i: usize = 0; i < 256; i += 16) {
    const x = windows(v128.load(tile), lowBytes, highBytes, lowPowers, highPowers);
    v128.store(spare + i, v128.and(x, mask));
    tile += k;
  }
  for (let i: usize = 0; i < 256; i += 32) {
    lookUp32(table, spare + i, to);
    lookUp32(table, spare + i + 16, to + 32);
    to += 64;
  }
}

/** Pairs of scalar codes of up to 7 bits as they are, or of up to 4 bits by a table of 16 bytes. */
function decodeScalars(part: usize, tile: usize, to: usize, levels: bool): void {
  const k = <usize>load<i32>(part, BITS);
  const lowBytes = v128.load(part, LOW_BYTES);
  const highBytes = v128.load(part, HIGH_BYTES);
  const lowPowers = v128.load(part, LOW_POWERS);
  const highPowers = v128.load(part, HIGH_POWERS);
  const mask = v128.load(part, MASK);
  const highMask = v128.load(part, HIGH);
  const factor = v128.load(part, FACTOR);
  const table = v128.load(part, LOW);
  for (let i = 0; i < 8; i++) {
    let x = windows(v128.load(tile), lowBytes, highBytes, lowPowers, highPowers);
    let left = v128.or(v128.and(x, mask), v128.and(i16x8.mul(x, factor), highMask));
    x = windows(v128.load(tile + 2 * k), lowBytes, highBytes, lowPowers, highPowers);
    let right = v128.or(v128.and(x, mask), v128.and(i16x8.mul(x, factor), highMask));
    if (levels) {
      left = swizzle(table, left);
      right = swizzle(table, right);
    }
    storeQuads(to, left, right);
    to += 32;
    tile += i & 1 ? 3 * k : k;
  }
}

/**
 * Lattice codes lie by eight columns: 16 rows' E8P codes of 16 bits, then 16 rows' codes of the second stage. Eight
 * bytes at a time: value + 64 xor 127, plus one, is -value + 64; the tables' sums stay within a byte.
 */
function decodeLattice(part: usize, tile: usize, to: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const table = <usize>load<u32>(part, TABLE);
  const second = <usize>load<u32>(part, SECOND_TABLE);
  const excess = load<u64>(part, EXCESS);
  for (let oct = 0; oct < 2; oct++) {
    for (let row: usize = 0; row < 16; row++) {
      let weights = e8p(table, tile + 2 * row);
      if (k == 6) weights += load<u64>(second + (<usize>load<u8>(tile + 32 + row) << 3));
      if (k == 8) weights += e8p(second, tile + 32 + 2 * row);
      weights -= excess;
      store<u32>(to + (row << 2), <u32>weights);
      store<u32>(to + (row << 2), <u32>(weights >> 32), 64);
    }
    tile += 8 * k;
    to += 128;
  }
}

/** Tables of 256 x 8 bytes: absolute values, signs as 0 and 127, what is added. */
// @ts-ignore: decorator
@inline
function e8p(table: usize, code: usize): u64 {
  const absolute = load<u64>(table + (<usize>load<u8>(code) << 3));
  const signs = table + (<usize>load<u8>(code, 1) << 3);
  return (absolute ^ load<u64>(signs, 2048)) + load<u64>(signs, 4096);
}
