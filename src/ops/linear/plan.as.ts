// How tiles of fields are decoded: constants that plan.ts lays out in memory, and what products ask of them.

/** Bytes of the constants of a rate. A plan holds two: for the first `lowTiles` tiles and the rest. */
export const PART: usize = 256;
export const FIRST: usize = 0;
export const REST: usize = 16;
export const POWERS: usize = 32;
export const WRAP: usize = 64;
export const KEEP: usize = 80;
export const MASK: usize = 96;
export const FACTOR: usize = 112;
export const LOW: usize = 128;
export const HIGH: usize = 144;
export const BITS: usize = 160;
export const DECODER: usize = 164;
export const TABLE: usize = 168;
export const SPREAD: usize = 172;
export const FOLD: usize = 176;
export const UNIT: usize = 180;
export const OFFSET: usize = 184;
export const NIBBLES: usize = 192;
export const ONE: usize = 208;
export const DOUBLED: usize = 224;
/** 16 bits for each plane. */
export const WEIGHTS: usize = 240;

export const SWIZZLE_SUM: i32 = 0;
export const TRELLIS_TABLE: i32 = 1;
export const UNIFORM: i32 = 2;
export const WIDE_PAIRS: i32 = 3;
export const PAIRS: i32 = 4;
/** 16 points or up to 8 levels, laid out for products straight from the codes; see fusedTiles.as.ts. */
export const NIBBLE_PAIRS: i32 = 5;
export const CRUMBS: i32 = 6;
export const THREE_BITS: i32 = 7;
export const BIT_PLANES: i32 = 8;

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

/** Whether products straight from the codes want the activations as splitPairs leaves them. */
// @ts-ignore: decorator
@inline
export function isSplit(part: usize): bool {
  return decoderOf(part) == NIBBLE_PAIRS;
}
