/**
 * The bit-shift trellis of Q-Palette, section 3 and C.3, and how its codes lie in memory.
 *
 * A tile of 16 x 16 weights is one sequence of 128 steps of two weights. At b bits per weight its codes are a
 * circular stream of 128 x 2b bits, least significant bit of a byte first. The state of step t is the 16 bits
 * from bit 2bt on (tail-biting: the stream wraps around), and the code maps a state to two weights.
 *
 * Step t stands for row t % 16 and columns 2 floor(t / 16) and 2 floor(t / 16) + 1 of the tile: eight successive
 * steps are one pair of columns of eight rows, so a kernel's lanes are rows and need no horizontal sums.
 *
 * @module
 */
import { packCodes } from "../packing.ts";

/** Bits of a state. */
export const STATE_BITS = 16;
/** Steps of a sequence, each of two weights. */
export const TILE_STEPS = 128;
/** Rows and columns of a tile. */
export const TILE_SIDE = 16;
/** Weights of a tile, or sequence. */
export const TILE_WEIGHTS = 256;

/** Bits that a step shifts in at `rate` bits per weight (1.5 to 5 in half steps). */
export function stepBits(rate: number): number {
  return 2 * rate;
}

/** Bytes of a tile's codes. */
export function tileBytes(rate: number): number {
  return (TILE_WEIGHTS * rate) / 8;
}

/** Writes the states of a tile's steps as its circular bit stream; the target's bits must be zero. */
export function packStates(states: Uint16Array, rate: number, target: Uint8Array, offset: number): void {
  const bits = stepBits(rate);
  const mask = (1 << bits) - 1;
  const fields = new Uint16Array(TILE_STEPS);
  for (let step = 0; step < TILE_STEPS; step++) fields[step] = states[step] & mask;
  packCodes(fields, bits, target, offset);
}

/** Reads the states of a tile's steps into `states`. */
export function unpackStates(source: Uint8Array, rate: number, offset: number, states: Uint16Array): void {
  const bits = stepBits(rate);
  const bytes = tileBytes(rate);
  // Only the windows of the last few steps wrap around.
  const inside = Math.floor((8 * (bytes - 2)) / bits);
  for (let step = 0, bit = 0; step < TILE_STEPS; step++, bit += bits) {
    const at = bit >>> 3;
    const place = offset + at;
    const word =
      step < inside
        ? source[place] | (source[place + 1] << 8) | (source[place + 2] << 16)
        : source[place] |
          (source[offset + ((at + 1) % bytes)] << 8) |
          (source[offset + ((at + 2) % bytes)] << 16);
    states[step] = word >>> (bit & 7);
  }
}

/** A matrix's tiles: bands of 16 rows, each a run of tiles from left to right. */
export interface TileLayout {
  /** Tiles of a band. */
  readonly tiles: number;
  /** Tiles of the first, lower rate; the rest have the second. */
  readonly lowTiles: number;
  readonly lowRate: number;
  readonly highRate: number;
  /** Bytes of a band's codes. */
  readonly bandBytes: number;
}

/**
 * The tiles of a matrix of `columns` columns at `bits` per weight. A quarter step is half-TCQ (section C.3.2): the
 * first half of the input columns (the larger half when the tiles are odd in number) a quarter bit below, the
 * rest a quarter bit above.
 */
export function tileLayout(bits: number, columns: number): TileLayout {
  const tiles = Math.ceil(columns / TILE_SIDE);
  const mixed = !Number.isInteger(2 * bits);
  const [lowRate, highRate] = mixed ? [bits - 0.25, bits + 0.25] : [bits, bits];
  const lowTiles = mixed ? Math.ceil(tiles / 2) : tiles;
  const bandBytes = lowTiles * tileBytes(lowRate) + (tiles - lowTiles) * tileBytes(highRate);
  return { tiles, lowTiles, lowRate, highRate, bandBytes };
}

/** The rate of a tile, and the offset of its codes within its band. */
export function tilePlace(layout: TileLayout, tile: number): { rate: number; offset: number } {
  const { lowTiles, lowRate, highRate } = layout;
  if (tile < lowTiles) return { rate: lowRate, offset: tile * tileBytes(lowRate) };
  return { rate: highRate, offset: lowTiles * tileBytes(lowRate) + (tile - lowTiles) * tileBytes(highRate) };
}
