/**
 * The WebAssembly search for a tile's states. Its memory is its own: one instance per worker.
 *
 * @module
 */
import type { TrellisCode } from "./code.ts";
import { STATE_BITS, stepBits, TILE_STEPS, TILE_WEIGHTS } from "./trellis.ts";
import { plainSimd } from "./viterbi.generated.ts";

interface Viterbi {
  readonly memory: WebAssembly.Memory;
  reserve(): number;
  values(): number;
  states(): number;
  prepare(bits: number, width: number): void;
  encode(window: number): number;
}

/** Units of the search's fixed point in 1. */
const UNITS_PER_ONE = 2048;
/** Values are clipped to this many standard deviations in the search, which its 32-bit costs need. */
const LARGEST_VALUE = 6;

/** Steps either side of the seam in the first pass. All 64 would lower the error by less than .2%. */
export function seamWindow(rate: number): number {
  if (rate < 3) return 64;
  return rate < 4 ? 32 : 24;
}

/** Finds the states of tiles of one code after another. */
export interface TileEncoder {
  /**
   * Encodes the 256 values of a tile, in step order and at unit scale.
   *
   * @returns the state of each step; valid until the next call.
   */
  encode(values: Float32Array, code: TrellisCode): Uint16Array;
}

/**
 * @param beam expand survivors up to `beam` times the mean survivor's cost above the least: 1.25 is faster by a
 * quarter from 3 bits on and loses up to 1% (below 2.5 bits it does nothing). 0 expands all.
 */
export function createTileEncoder(beam = 0): TileEncoder {
  const binary = Uint8Array.from(atob(plainSimd), (character) => character.charCodeAt(0));
  const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { abort } });
  const viterbi = instance.exports as unknown as Viterbi;
  const codesAt = viterbi.reserve();
  const { buffer } = viterbi.memory;
  const codes = new Int16Array(buffer, codesAt, 2 << STATE_BITS);
  const scaled = new Int16Array(buffer, viterbi.values(), TILE_WEIGHTS);
  const found = new Uint16Array(buffer, viterbi.states(), TILE_STEPS);
  const states = new Uint16Array(TILE_STEPS);
  let prepared: TrellisCode | undefined;

  function prepare(code: TrellisCode): void {
    if (prepared === code) return;
    const { rate, pairs, unit } = code;
    for (let i = 0; i < pairs.length; i++) codes[i] = Math.round(pairs[i] * unit * UNITS_PER_ONE);
    viterbi.prepare(stepBits(rate), beam);
    prepared = code;
  }

  return {
    encode(values, code) {
      prepare(code);
      // The search shifts new bits in at the low end of a state, the layout has them at the high end: the same
      // trellis run backwards.
      for (let step = 0; step < TILE_STEPS; step++) {
        const to = 2 * (TILE_STEPS - 1 - step);
        scaled[to] = fixedPoint(values[2 * step]);
        scaled[to + 1] = fixedPoint(values[2 * step + 1]);
      }
      viterbi.encode(seamWindow(code.rate));
      for (let step = 0; step < TILE_STEPS; step++) states[step] = found[TILE_STEPS - 1 - step];
      return states;
    },
  };
}

function fixedPoint(value: number): number {
  return Math.round(Math.max(-LARGEST_VALUE, Math.min(LARGEST_VALUE, value)) * UNITS_PER_ONE);
}

function abort(): never {
  throw new Error("the Viterbi kernel aborted");
}
