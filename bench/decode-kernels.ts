/**
 * Decode kernels: weights per second of products with one token and int8 activations, scheme by scheme.
 *
 * In memory: copies of a 4096 x 4096 weight, together over 64 MB, are taken in turn, so that no cache holds them. In
 * cache: a 512 x 4096 weight every time. The best of all samples, which on a shared machine says more of a kernel
 * than the median. "aim" is what hand-written prototypes reached per thread, streaming, on an AMD Zen 5 core.
 *
 * node bench/decode-kernels.ts [--json] [--schemes tcq-s-2,vq-4] [--threads 1,2] [--activations int8] [--tokens 1]
 *   [--seconds 0.3]
 */
import { parseArgs } from "node:util";
import type { ActivationPrecision } from "../src/backends/operation.ts";
import type { WasmBackend } from "../src/backends/wasm/backend.ts";
import { spawnNodeWorker } from "../src/backends/wasm/workers.node.ts";
import { openWasm } from "../src/ops/wasm.ts";
import { fillGaussian } from "../src/quantizers/random.ts";
import { randomMatrix } from "../src/quantizers/randomMatrix.ts";
import { allSchemes, parseScheme } from "../src/quantizers/scheme.ts";
import { numbers } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    schemes: { type: "string" },
    threads: { type: "string", default: "1,2" },
    activations: { type: "string", default: "int8" },
    tokens: { type: "string", default: "1" },
    seconds: { type: "string", default: "0.3" },
  },
});
const schemes = flags.schemes
  ? flags.schemes.split(",").map(parseScheme)
  : allSchemes().filter(({ family }) => family !== "float");
const tokens = Number(flags.tokens);
const columns = 4096;
const places = { memory: 4096, cache: 512 } as const;
/** Together larger than any cache. */
const coldBytes = 64e6;

/** Gigaweights per second of prototypes, by threads: the sources' table. */
const aims: Readonly<Record<string, readonly [one: number, two: number]>> = {
  "nuq-4": [48.5, 90],
  "vq-2": [60, 115],
  "vq-4": [7, 14],
  "tcq-2": [4.8, 9.5],
  "tcq-s-2": [11, 22],
  "uniform-8": [31, 50],
};

interface DecodeResult {
  readonly scheme: string;
  readonly place: keyof typeof places;
  readonly threads: number;
  readonly gigaweightsPerSecond: number;
  readonly gigabytesPerSecond: number;
  readonly aim: number | undefined;
}

async function measure(
  backend: WasmBackend,
  name: string,
  place: keyof typeof places,
): Promise<DecodeResult> {
  const rows = places[place];
  const weights = randomMatrix(name, rows, columns);
  const handles = [await backend.loadLinear(weights)];
  const { byteLength } = handles[0];
  while (place === "memory" && handles.length * byteLength < coldBytes) {
    handles.push(await backend.loadLinear(weights));
  }
  const input = backend.allocate(tokens * columns * 4);
  const out = backend.allocate(tokens * rows * 4);
  backend.upload(input, fillGaussian(new Float32Array(tokens * columns), 3));
  const programs = handles.map((handle) =>
    backend.record([
      {
        ...{ op: "linear", input, weights: [handle], biases: [undefined], outputs: [out] },
        ...{ rows: tokens, activations: flags.activations as ActivationPrecision },
      },
    ]),
  );
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + 1e3 * Number(flags.seconds);
  for (let i = 0; performance.now() < end || i < 20; i++) {
    const started = performance.now();
    backend.runNow(programs[i % programs.length]);
    best = Math.min(best, performance.now() - started);
  }
  for (const program of programs) program.free();
  for (const handle of handles) backend.freeLinear(handle);
  for (const slot of [input, out]) backend.free(slot);
  return {
    scheme: name,
    place,
    threads: backend.threads,
    gigaweightsPerSecond: (rows * columns * tokens) / best / 1e6,
    gigabytesPerSecond: byteLength / best / 1e6,
    aim: aims[name]?.[backend.threads - 1],
  };
}

const results: DecodeResult[] = [];
for (const threads of numbers(flags.threads)) {
  const backend = await openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true });
  for (const { name } of schemes) {
    for (const place of ["memory", "cache"] as const) results.push(await measure(backend, name, place));
  }
  backend.dispose();
}

if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  for (const { scheme, place, threads, aim, ...speed } of results) {
    const { gigaweightsPerSecond: weights, gigabytesPerSecond: bytes } = speed;
    console.log(
      `${scheme.padEnd(11)} ${place.padEnd(6)} ${threads} threads  ${weights.toFixed(1).padStart(6)} Gweights/s ` +
        `${bytes.toFixed(1).padStart(6)} GB/s${aim ? `  aim ${aim}, ${((100 * weights) / aim).toFixed(0)}%` : ""}`,
    );
  }
}
