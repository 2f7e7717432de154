/**
 * Searches for a better swizzle-sum code at one rate: random changes of the mixing constants, the two tables and
 * the unit, kept when they lower the distortion of the same Gaussian sequences, then judged on fresh ones.
 * Prints a row for the table in src/quantizers/tcq/code.ts.
 *
 * node bench/tcq-tune.ts --rate 3 [--seconds 60] [--sequences 80] [--seed 1]
 */
import { parseArgs } from "node:util";
import { fillGaussian, randomWord } from "../src/quantizers/random.ts";
import type { SwizzleSum } from "../src/quantizers/tcq/code.ts";
import { swizzleSum, swizzleSumCode } from "../src/quantizers/tcq/code.ts";
import { createTileEncoder } from "../src/quantizers/tcq/encoder.ts";
import { TILE_WEIGHTS } from "../src/quantizers/tcq/trellis.ts";

const { values: flags } = parseArgs({
  options: {
    rate: { type: "string", default: "3" },
    seconds: { type: "string", default: "60" },
    sequences: { type: "string", default: "80" },
    seed: { type: "string", default: "1" },
  },
});
const rate = Number(flags.rate);
const seed = Number(flags.seed);
const encoder = createTileEncoder();

let drawn = 0;
/** A random integer below `limit`. */
function draw(limit: number): number {
  return randomWord(seed, drawn++) % limit;
}

function distortion(candidate: SwizzleSum, weights: Float32Array): number {
  const code = swizzleSumCode(rate, candidate);
  let error = 0;
  for (let start = 0; start < weights.length; start += TILE_WEIGHTS) {
    const tile = weights.subarray(start, start + TILE_WEIGHTS);
    const states = encoder.encode(tile, code);
    for (let i = 0; i < TILE_WEIGHTS; i++) {
      error += (tile[i] - code.pairs[2 * states[i >> 1] + (i & 1)] * code.unit) ** 2;
    }
  }
  return error / weights.length;
}

function changed(code: SwizzleSum): SwizzleSum {
  const choice = draw(20);
  if (choice === 0) return { ...code, unit: code.unit * (1 + (draw(201) - 100) / 2500) };
  if (choice < 8) {
    const spread = draw(2) ? 1 + draw(12) : code.spread;
    const fold = draw(2) ? 5 + draw(7) : code.fold;
    return { ...code, spread, fold, factor: draw(65536) | 1 };
  }
  const [low, high] = [code.low.slice(), code.high.slice()];
  for (let changes = 1 + draw(3); changes > 0; changes--) {
    const table = draw(2) ? low : high;
    const entry = 8 + draw(8);
    table[entry] += draw(5) - 2;
    table[15 - entry] = -table[entry];
  }
  return { ...code, low, high };
}

/** Sums must keep to 7 bits. */
function fits({ low, high }: SwizzleSum): boolean {
  return Math.max(...low) + Math.max(...high) <= 63;
}

const sample = fillGaussian(new Float32Array(Number(flags.sequences) * TILE_WEIGHTS), seed);
let best = swizzleSum(rate);
let least = distortion(best, sample);
const before = least;
const until = performance.now() + 1000 * Number(flags.seconds);
while (performance.now() < until) {
  const candidate = changed(best);
  if (!fits(candidate)) continue;
  const error = distortion(candidate, sample);
  if (error < least) [best, least] = [candidate, error];
}
const fresh = fillGaussian(new Float32Array(512 * TILE_WEIGHTS), seed + 1000);
const { spread, factor, fold, unit, low, high } = best;
console.log(`on the searched sequences ${before.toFixed(6)} -> ${least.toFixed(6)}`);
console.log(
  `on 512 fresh ones ${distortion(swizzleSum(rate), fresh).toFixed(6)} -> ${distortion(best, fresh).toFixed(6)}`,
);
const upper = (table: Int8Array) => `[${table.slice(8).join(", ")}]`;
console.log(`${rate}: [${spread}, ${factor}, ${fold}, ${unit.toFixed(6)}, ${upper(low)}, ${upper(high)}],`);
