// Tiles of 16 x 16 weights whose codes are one stream of fields of k bits, a field for two neighbouring columns of
// a row, rows first: the trellis' canonical layout (see quantizers/tcq/trellis.ts), and that of every code that is
// repacked so. Decoders write integers: bytes of 7 bits, for four columns after another 16 rows x 4 columns; or,
// where those are too coarse, 16 bits, for two columns after another 16 rows x 2 columns.

/** The constants of a rate, as plan.ts lays them out. A plan holds two: for the first `lowTiles` tiles and the rest. */
export const PART: usize = 256;
const FIRST: usize = 0;
const REST: usize = 16;
const POWERS: usize = 32;
const WRAP: usize = 64;
const KEEP: usize = 80;
export const MASK: usize = 96;
const FACTOR: usize = 112;
export const LOW: usize = 128;
export const HIGH: usize = 144;
const BITS: usize = 160;
const DECODER: usize = 164;
const TABLE: usize = 168;
const SPREAD: usize = 172;
const FOLD: usize = 176;
const UNIT: usize = 180;
const OFFSET: usize = 184;
export const NIBBLES: usize = 192;
const ONE: usize = 208;

const SWIZZLE_SUM = 0;
const TRELLIS_TABLE = 1;
const UNIFORM = 2;
const WIDE_PAIRS = 3;
const PAIRS = 4;
/** 16 points or up to 8 levels, laid out for products straight from the codes; see fusedTiles.as.ts. */
export const NIBBLE_PAIRS: i32 = 5;
export const CRUMBS: i32 = 6;
export const THREE_BITS: i32 = 7;

// @ts-ignore: decorator
@inline
export function swizzle(table: v128, index: v128): v128 {
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
  return load<i32>(part, DECODER) == WIDE_PAIRS;
}

// @ts-ignore: decorator
@inline
export function decoderOf(part: usize): i32 {
  return load<i32>(part, DECODER);
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

/**
 * Decodes up to 8 tiles to 256 bytes each or, when wide, 512. `spare`: 256 bytes for each tile, where the places of
 * look-ups are written well before they are read; read at once they are a sixth slower.
 */
export function decodeTiles(part: usize, tile: usize, tiles: i32, to: usize, spare: usize): void {
  const decoder = load<i32>(part, DECODER);
  if (decoder == SWIZZLE_SUM) decodeSwizzleSum(part, tile, tiles, to);
  else if (decoder == TRELLIS_TABLE) decodeTrellisTable(part, tile, tiles, to, spare);
  else if (decoder == PAIRS) decodePairs(part, tile, tiles, to, spare, false);
  else if (decoder == WIDE_PAIRS) decodePairs(part, tile, tiles, to, spare, true);
  else {
    for (; tiles; tiles--) {
      if (decoder == UNIFORM) decodeUniform(part, tile, to);
      else if (decoder == NIBBLE_PAIRS) decodeNibblePairs(part, tile, to);
      else if (decoder == CRUMBS) decodeCrumbs(part, tile, to);
      else decodeThreeBits(part, tile, to);
      tile += tileBytes(part);
      to += 256;
    }
  }
}

/**
 * 16 bits from each of eight successive fields on. `first` finds the byte in which each field begins, `rest` the two
 * bytes after it; a product by a power of two is a shift of its own for each lane.
 */
// @ts-ignore: decorator
@inline
function windows(v: v128, first: v128, rest: v128, powers: v128): v128 {
  return v128.or(
    i16x8.shr_u(i16x8.mul(swizzle(v, first), powers), 8), i16x8.mul(swizzle(v, rest), powers),
  );
}

/** The last eight fields of a tile, followed by the first: a trellis' stream is circular. */
// @ts-ignore: decorator
@inline
function lastFields(part: usize, tile: usize, k: usize): v128 {
  const start = swizzle(v128.load64_zero(tile), v128.load(part, WRAP));
  return v128.or(v128.and(v128.load(tile + 15 * k), v128.load(part, KEEP)), start);
}

/** Eight rows of two pairs of columns, one after another in a vector, to eight rows of four columns. */
// @ts-ignore: decorator
@inline
function storeQuads(to: usize, left: v128, right: v128): void {
  v128.store(to, v128.shuffle<i16>(left, right, 0, 8, 1, 9, 2, 10, 3, 11));
  v128.store(to, v128.shuffle<i16>(left, right, 4, 12, 5, 13, 6, 14, 7, 15), 16);
}

/** The shifts are constants of their own code: V8 spends four instructions on a shift by a variable. */
function decodeSwizzleSum(part: usize, tile: usize, tiles: i32, to: usize): void {
  const shifts = load<i32>(part, SPREAD) * 16 + load<i32>(part, FOLD);
  const k = load<i32>(part, BITS);
  if (k == 4 && shifts == 0x99) twoBitSums(part, tile, tiles, to, 9, 9);
  else if (k == 8 && shifts == 0x2a) fourBitSums(part, tile, tiles, to, 2, 10);
  else if (shifts == 0x99) swizzleSums(part, tile, tiles, to, 9, 9);
  else if (shifts == 0x88) swizzleSums(part, tile, tiles, to, 8, 8);
  else if (shifts == 0xc9) swizzleSums(part, tile, tiles, to, 12, 9);
  else if (shifts == 0x5a) swizzleSums(part, tile, tiles, to, 5, 10);
  else if (shifts == 0x2a) swizzleSums(part, tile, tiles, to, 2, 10);
  else if (shifts == 0x1b) swizzleSums(part, tile, tiles, to, 1, 11);
  else if (shifts == 0x17) swizzleSums(part, tile, tiles, to, 1, 7);
  else swizzleSums(part, tile, tiles, to, load<i32>(part, SPREAD), load<i32>(part, FOLD));
}

// @ts-ignore: decorator
@inline
function sums(x: v128, spread: i32, fold: i32, factor: v128, low: v128, high: v128, nibbles: v128): v128 {
  const product = i16x8.mul(v128.xor(x, i16x8.shr_u(x, spread)), factor);
  const h = v128.xor(product, i16x8.shr_u(product, fold));
  return i8x16.add(swizzle(low, v128.and(h, nibbles)), swizzle(high, v128.and(i16x8.shr_u(h, 4), nibbles)));
}

// @ts-ignore: decorator
@inline
function swizzleSums(part: usize, tile: usize, tiles: i32, to: usize, spread: i32, fold: i32): void {
  const k = <usize>load<i32>(part, BITS);
  const first = v128.load(part, FIRST);
  const rest = v128.load(part, REST);
  const powers = v128.load(part, POWERS);
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (; tiles; tiles--) {
    let at = tile;
    for (let i = 0; i < 4; i++) {
      const left = sums(windows(v128.load(at), first, rest, powers), spread, fold, factor, low, high, nibbles);
      const right = sums(windows(v128.load(at + 2 * k), first, rest, powers), spread, fold, factor, low, high, nibbles);
      storeQuads(to, left, right);
      at += k;
      const last = i == 3 ? lastFields(part, tile, k) : v128.load(at + 2 * k);
      const nextLeft = sums(windows(v128.load(at), first, rest, powers), spread, fold, factor, low, high, nibbles);
      const nextRight = sums(windows(last, first, rest, powers), spread, fold, factor, low, high, nibbles);
      storeQuads(to + 32, nextLeft, nextRight);
      to += 64;
      at += 3 * k;
    }
    tile += 16 * k;
  }
}

/** Where in 16 bytes lie the states of rows 0 and 2 of two pairs of columns, of 1 and 3 after a shift, of 4 and 6, ... */
const TWO_BIT_STATES = memory.data<u8>(
  // prettier-ignore
  [
  0, 1, 8, 9, 128, 128, 128, 128, 1, 2, 9, 10, 128, 128, 128, 128,
  128, 128, 128, 128, 0, 1, 8, 9, 128, 128, 128, 128, 1, 2, 9, 10,
  2, 3, 10, 11, 128, 128, 128, 128, 3, 4, 11, 12, 128, 128, 128, 128,
  128, 128, 128, 128, 2, 3, 10, 11, 128, 128, 128, 128, 3, 4, 11, 12,
  ],
  16,
);

/** Fields of 4 bits: half of the states begin at a byte, and 16 bytes hold two pairs of columns of eight rows. */
// @ts-ignore: decorator
@inline
function twoBitSums(part: usize, tile: usize, tiles: i32, to: usize, spread: i32, fold: i32): void {
  const even = v128.load(TWO_BIT_STATES);
  const odd = v128.load(TWO_BIT_STATES, 16);
  const nextEven = v128.load(TWO_BIT_STATES, 32);
  const nextOdd = v128.load(TWO_BIT_STATES, 48);
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (; tiles; tiles--) {
    for (let i = 0; i < 4; i++) {
      let v = v128.load(tile);
      let w = i64x2.shr_u(v, 4);
      let x = v128.or(swizzle(v, even), swizzle(w, odd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles));
      x = v128.or(swizzle(v, nextEven), swizzle(w, nextOdd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles), 16);
      v = v128.load(tile, 4);
      // The stream is circular.
      if (i == 3) v = i16x8.replace_lane(v, 6, load<u16>(tile - 48));
      w = i64x2.shr_u(v, 4);
      x = v128.or(swizzle(v, even), swizzle(w, odd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles), 32);
      x = v128.or(swizzle(v, nextEven), swizzle(w, nextOdd));
      v128.store(to, sums(x, spread, fold, factor, low, high, nibbles), 48);
      tile += 16;
      to += 64;
    }
  }
}

/** Fields of 8 bits: a state is a byte and the next. */
// @ts-ignore: decorator
@inline
function fourBitSums(part: usize, tile: usize, tiles: i32, to: usize, spread: i32, fold: i32): void {
  const factor = v128.load(part, FACTOR);
  const low = v128.load(part, LOW);
  const high = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (; tiles; tiles--) {
    for (let i = 0; i < 4; i++) {
      const a = v128.load(tile);
      const nextA = v128.load(tile, 1);
      const b = v128.load(tile, 16);
      let nextB = v128.load(tile, 17);
      if (i == 3) nextB = i8x16.replace_lane(nextB, 15, load<u8>(tile - 96));
      storeQuads(
        to, sums(zipLow(a, nextA), spread, fold, factor, low, high, nibbles),
        sums(zipLow(b, nextB), spread, fold, factor, low, high, nibbles),
      );
      storeQuads(
        to + 32, sums(zipHigh(a, nextA), spread, fold, factor, low, high, nibbles),
        sums(zipHigh(b, nextB), spread, fold, factor, low, high, nibbles),
      );
      tile += 32;
      to += 64;
    }
  }
}

// @ts-ignore: decorator
@inline
function zipLow(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

// @ts-ignore: decorator
@inline
function zipHigh(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
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

function decodeTrellisTable(part: usize, tile: usize, tiles: i32, to: usize, spare: usize): void {
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

function decodePairs(part: usize, tile: usize, tiles: i32, to: usize, spare: usize, wide: bool): void {
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

/** Pairs of scalar codes of up to 7 bits, as they are. */
function decodeUniform(part: usize, tile: usize, to: usize): void {
  const k = <usize>load<i32>(part, BITS);
  const first = v128.load(part, FIRST);
  const rest = v128.load(part, REST);
  const powers = v128.load(part, POWERS);
  const mask = v128.load(part, MASK);
  const highMask = v128.load(part, HIGH);
  const factor = v128.load(part, FACTOR);
  for (let i = 0; i < 8; i++) {
    let x = windows(v128.load(tile), first, rest, powers);
    const left = v128.or(v128.and(x, mask), v128.and(i16x8.mul(x, factor), highMask));
    x = windows(v128.load(tile + 2 * k), first, rest, powers);
    const right = v128.or(v128.and(x, mask), v128.and(i16x8.mul(x, factor), highMask));
    storeQuads(to, left, right);
    to += 32;
    tile += i & 1 ? 3 * k : k;
  }
}

/** Rows by four pairs of columns in the low nibbles of 64 bytes, four more in the high ones. */
function decodeNibblePairs(part: usize, tile: usize, to: usize): void {
  const x = v128.load(part, LOW);
  const y = v128.load(part, HIGH);
  const nibbles = v128.load(part, NIBBLES);
  for (let v: usize = 0; v < 64; v += 16) {
    let codes = v128.load(tile + v);
    storeFourRows(to + v, swizzle(x, v128.and(codes, nibbles)), swizzle(y, v128.and(codes, nibbles)));
    codes = v128.and(i16x8.shr_u(codes, 4), nibbles);
    storeFourRows(to + v + 128, swizzle(x, codes), swizzle(y, codes));
  }
}

/** First and second values of four pairs of four rows, to two runs of four columns. */
// @ts-ignore: decorator
@inline
function storeFourRows(to: usize, x: v128, y: v128): void {
  const low = zipLow(x, y);
  const high = zipHigh(x, y);
  v128.store(to, v128.shuffle<i32>(low, high, 0, 2, 4, 6));
  v128.store(to, v128.shuffle<i32>(low, high, 1, 3, 5, 7), 64);
}

/** Rows by four columns in the low two bits of 64 bytes, the next four in the next bits, and so on. */
function decodeCrumbs(part: usize, tile: usize, to: usize): void {
  const levels = v128.load(part, LOW);
  const mask = v128.load(part, MASK);
  for (let v: usize = 0; v < 64; v += 16) {
    const codes = v128.load(tile + v);
    v128.store(to + v, swizzle(levels, v128.and(codes, mask)));
    v128.store(to + v, swizzle(levels, v128.and(i16x8.shr_u(codes, 2), mask)), 64);
    v128.store(to + v, swizzle(levels, v128.and(i16x8.shr_u(codes, 4), mask)), 128);
    v128.store(to + v, swizzle(levels, v128.and(i16x8.shr_u(codes, 6), mask)), 192);
  }
}

/** As crumbs; the third bits of 16 rows x 16 columns follow in 32 bytes, the first 8 rows' in the first. */
function decodeThreeBits(part: usize, tile: usize, to: usize): void {
  const levels = v128.load(part, LOW);
  const mask = v128.load(part, MASK);
  const third = v128.load(part, HIGH);
  for (let v: usize = 0; v < 64; v += 16) {
    const codes = v128.load(tile + v);
    let bits = v128.load(tile + 64 + ((v >> 1) & 16));
    if (v & 16) bits = i16x8.shr_u(bits, 4);
    let code = v128.or(v128.and(codes, mask), v128.and(i16x8.shl(bits, 2), third));
    v128.store(to + v, swizzle(levels, code));
    code = v128.or(v128.and(i16x8.shr_u(codes, 2), mask), v128.and(i16x8.shl(bits, 1), third));
    v128.store(to + v, swizzle(levels, code), 64);
    code = v128.or(v128.and(i16x8.shr_u(codes, 4), mask), v128.and(bits, third));
    v128.store(to + v, swizzle(levels, code), 128);
    code = v128.or(v128.and(i16x8.shr_u(codes, 6), mask), v128.and(i16x8.shr_u(bits, 1), third));
    v128.store(to + v, swizzle(levels, code), 192);
  }
}
