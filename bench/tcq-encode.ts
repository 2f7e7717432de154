/**
 * Trellis-coded quantizers on Gaussian weights: distortion, and encoding and decoding speed per core of CPU time,
 * beside what bounds the encoding.
 *
 * A step of the search updates all 65,536 states, each four lanes' worth of one load and four SIMD operations
 * (subtract, dot, add, minimum). The two passes take 176 to 256 steps for 256 weights, so at `--simd-per-cycle` SIMD
 * operations a cycle and `--ghz` the bound is ghz 1e9 simd / (65536 steps / 256) weights per second.
 *
 * node bench/tcq-encode.ts [--json] [--sequences 1024] [--schemes tcq-3,tcq-s-3] [--beam 0] [--ghz 4]
 *   [--simd-per-cycle 4]
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { fillGaussian } from "../src/quantizers/random.ts";
import { allSchemes, parseScheme } from "../src/quantizers/scheme.ts";
import { seamWindow } from "../src/quantizers/tcq/encoder.ts";
import { tcqQuantizer } from "../src/quantizers/tcq/index.ts";
import { TILE_STEPS, TILE_WEIGHTS } from "../src/quantizers/tcq/trellis.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    sequences: { type: "string", default: "1024" },
    schemes: { type: "string" },
    beam: { type: "string", default: "0" },
    ghz: { type: "string", default: String((cpus()[0]?.speed ?? 0) / 1000 || 4) },
    "simd-per-cycle": { type: "string", default: "4" },
  },
});
const schemes = flags.schemes
  ? flags.schemes.split(",").map(parseScheme)
  : allSchemes().filter(({ family }) => family === "tcq" || family === "tcq-s");

/** A square-ish matrix of the asked number of tiles: 16 tiles wide, so that half-TCQ splits it evenly. */
const columns = 256;
const rows = 16 * Math.ceil(Number(flags.sequences) / 16);
const sequences = (rows * columns) / 256;
const weights = fillGaussian(new Float32Array(rows * columns), 1);
const unitScales = new Float32Array(rows).fill(1);

/** SIMD operations of the search per weight: 4 operations on 4 lanes for each of 65,536 states. */
function simdPerWeight(rate: number): number {
  return (65536 * (TILE_STEPS + 2 * seamWindow(rate))) / TILE_WEIGHTS;
}

function encodeBound(bits: number): number {
  const rates = Number.isInteger(2 * bits) ? [bits] : [bits - 0.25, bits + 0.25];
  const operations = rates.reduce((sum, rate) => sum + simdPerWeight(rate) / rates.length, 0);
  return (Number(flags.ghz) * 1e9 * Number(flags["simd-per-cycle"])) / operations;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const results = schemes.map((scheme) => {
  const quantizer = tcqQuantizer(scheme, Number(flags.beam));
  quantizer.encode(weights.subarray(0, 32 * columns), 32, columns);
  const started = cpuSeconds();
  const matrix = quantizer.encode(weights, rows, columns, { scales: unitScales });
  const encoded = cpuSeconds();
  let decoded = quantizer.decode(matrix);
  const repeats = 20;
  const decoding = cpuSeconds();
  for (let i = 0; i < repeats; i++) decoded = quantizer.decode(matrix);
  const decodeSeconds = (cpuSeconds() - decoding) / repeats;
  let error = 0;
  let energy = 0;
  for (let i = 0; i < weights.length; i++) {
    error += (weights[i] - decoded[i]) ** 2;
    energy += weights[i] ** 2;
  }
  return {
    quantizer: scheme.name,
    bits: scheme.bits,
    sequences,
    distortion: error / energy,
    bound: 2 ** (-2 * scheme.bits),
    encodeWeightsPerSecondPerCore: weights.length / (encoded - started),
    encodeBoundWeightsPerSecond: encodeBound(scheme.bits),
    decodeWeightsPerSecond: weights.length / decodeSeconds,
  };
});

if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  for (const result of results) {
    const { quantizer, distortion, bound, encodeWeightsPerSecondPerCore: encode } = result;
    const limit = result.encodeBoundWeightsPerSecond;
    console.log(
      `${quantizer.padEnd(11)} distortion ${distortion.toFixed(5)} (2^-2b ${bound.toFixed(5)})  encode ` +
        `${(encode / 1e3).toFixed(0)} K/s of ${(limit / 1e3).toFixed(0)}  decode ` +
        `${(result.decodeWeightsPerSecond / 1e6).toFixed(0)} M/s`,
    );
  }
}
