/**
 * Speed of the linear kernels of the wasm backend beside the memory bandwidth measured at the same time.
 *
 * In memory: weights are copied until they exceed 64 MB and taken in turn, and between samples a stream of 32 MB is
 * read, so that no cache holds them; that stream is the bandwidth. In cache: the same weight every time.
 * An operation quantizes its input where the kernel is an int8 one, then multiplies. Medians.
 *
 * node bench/linear.ts [--json] [--kernels nuq-4,f32] [--shapes 576x576,4096x4096] [--tokens 1,8] [--threads 1,2]
 *   [--samples 9]
 */
import { parseArgs } from "node:util";
import type { LinearWeights, Program } from "../src/backends/backend.ts";
import type { ActivationPrecision, LinearHandle } from "../src/backends/operation.ts";
import type { WasmBackend } from "../src/backends/wasm/backend.ts";
import { READ_STREAM } from "../src/backends/wasm/opcodes.ts";
import { Scratch } from "../src/backends/wasm/scratch.ts";
import { spawnNodeWorker } from "../src/backends/wasm/workers.node.ts";
import { median } from "../src/median.ts";
import { openWasm } from "../src/ops/wasm.ts";
import { fillGaussian } from "../src/quantizers/random.ts";
import { randomMatrix } from "../src/quantizers/randomMatrix.ts";
import { numbers, seconds, table } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    kernels: { type: "string", default: "f32,f16,nuq-2,nuq-4,uniform-8,nuq-6,nuq-4:float" },
    shapes: { type: "string", default: "576x576,1536x576,512x1408,2048x5632,4096x4096" },
    tokens: { type: "string", default: "1,2,4,8,16,64" },
    threads: { type: "string", default: "1,2" },
    samples: { type: "string", default: "9" },
  },
});

/** Larger than any cache of the machines this runs on. */
const STREAM_BYTES = 256 << 20;
const STREAM_SLICE = 32 << 20;
const COLD_BYTES = 64 << 20;
/** Weights up to here are measured from the cache, too. */
const CACHED_BYTES = 16 << 20;
/** A sample lasts about this long, or one operation. */
const SAMPLE_SECONDS = 4e-3;

interface LinearResult {
  readonly kernel: string;
  readonly activations: ActivationPrecision;
  readonly shape: readonly [rows: number, columns: number];
  readonly tokens: number;
  readonly threads: number;
  readonly weights: "memory" | "cache";
  readonly microseconds: number;
  readonly gigabytesPerSecond: number;
  readonly gigaweightsPerSecond: number;
  /** Multiplications and additions, 1e9 a second. */
  readonly gigaoperationsPerSecond: number;
  /** Reading at the same time, GB/s. */
  readonly bandwidth: number;
  /** Bytes of the weights / bandwidth: no product from memory can be faster. */
  readonly boundMicroseconds: number;
  /** The bound over the time: 1 is as fast as memory. */
  readonly ratio: number;
}

/** Reads the next 32 MB of a buffer; returns GB/s. */
function streamReader(backend: WasmBackend): () => number {
  const buffer = backend.allocate(STREAM_BYTES);
  const result = backend.allocate(1024);
  const programs = Array.from({ length: STREAM_BYTES / STREAM_SLICE }, (_, i) =>
    backend.recordInstructions(
      [{ code: READ_STREAM, args: [buffer.place + i * STREAM_SLICE, STREAM_SLICE, result.place] }],
      new Scratch(backend.threads),
      1,
    ),
  );
  let next = 0;
  return () => STREAM_SLICE / 1e9 / seconds(() => backend.runNow(programs[next++ % programs.length]));
}

function weightsOf(scheme: string, rows: number, columns: number): LinearWeights {
  if (scheme === "f32" || scheme === "f16") {
    const values = fillGaussian(new Float32Array(1 << 16), 2);
    const readRows = async (start: number, end: number) =>
      Float32Array.from({ length: (end - start) * columns }, (_, i) => values[i & 0xffff]);
    return { scheme, rows, columns, readRows };
  }
  return randomMatrix(scheme, rows, columns);
}

async function measureShape(
  backend: WasmBackend,
  read: () => number,
  kernel: string,
  rows: number,
  columns: number,
): Promise<LinearResult[]> {
  const [scheme, kind] = kernel.split(":");
  const activations = kind === "float" ? "float" : "int8";
  const source = weightsOf(scheme, rows, columns);
  const handles: LinearHandle[] = [await backend.loadLinear(source)];
  const { byteLength } = handles[0];
  while (handles.length * byteLength < COLD_BYTES) handles.push(await backend.loadLinear(source));
  const results: LinearResult[] = [];
  for (const tokens of numbers(flags.tokens)) {
    const input = backend.allocate(tokens * columns * 4);
    const out = backend.allocate(tokens * rows * 4);
    backend.upload(input, fillGaussian(new Float32Array(tokens * columns), 3));
    const programs = handles.map((handle) =>
      backend.record([
        {
          ...{ op: "linear", input, weights: [handle], biases: [undefined], outputs: [out] },
          ...{ rows: tokens, activations },
        },
      ]),
    );
    for (const place of byteLength > CACHED_BYTES ? (["memory"] as const) : (["memory", "cache"] as const)) {
      const cold = place === "memory";
      const { time, bandwidth } = sample(backend, cold ? programs : [programs[0]], read, cold);
      const bound = byteLength / 1e9 / bandwidth;
      results.push({
        ...{ kernel: scheme, activations, shape: [rows, columns], tokens, threads: backend.threads },
        weights: place,
        microseconds: time * 1e6,
        gigabytesPerSecond: byteLength / 1e9 / time,
        gigaweightsPerSecond: (rows * columns) / 1e9 / time,
        gigaoperationsPerSecond: (2 * tokens * rows * columns) / 1e9 / time,
        ...{ bandwidth, boundMicroseconds: bound * 1e6, ratio: bound / time },
      });
    }
    for (const program of programs) program.free();
    for (const slot of [input, out]) backend.free(slot);
  }
  for (const handle of handles) backend.freeLinear(handle);
  return results;
}

/** Medians of the time of one program and of the bandwidth. A stream is read before each sample. */
function sample(backend: WasmBackend, programs: readonly Program[], read: () => number, cold: boolean) {
  const once = () => backend.runNow(programs[0]);
  once();
  const repeats = Math.max(1, Math.round(SAMPLE_SECONDS / seconds(once)));
  let next = 0;
  const times: number[] = [];
  const bandwidths: number[] = [];
  for (let i = 0; i < Number(flags.samples); i++) {
    bandwidths.push(read());
    if (!cold) once();
    const time = seconds(() => {
      for (let k = 0; k < repeats; k++) backend.runNow(programs[next++ % programs.length]);
    });
    times.push(time / repeats);
  }
  return { time: median(times), bandwidth: median(bandwidths) };
}

/** All kernels, shapes, numbers of tokens and of threads that the flags name. */
async function benchLinear(): Promise<LinearResult[]> {
  const results: LinearResult[] = [];
  for (const threads of numbers(flags.threads)) {
    const backend = await openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true });
    const read = streamReader(backend);
    for (let i = 0; i < 8; i++) read();
    for (const kernel of flags.kernels.split(",")) {
      for (const shape of flags.shapes.split(",")) {
        const [rows, columns] = shape.split("x").map(Number);
        results.push(...(await measureShape(backend, read, kernel, rows, columns)));
      }
    }
    backend.dispose();
  }
  return results;
}

const results = await benchLinear();
if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  const header = ["kernel", "shape", "tokens", "threads", "from", "us", "GB/s", "Gweights/s", "GOPS"];
  const rows = results.map((result) => [
    result.kernel + (result.activations === "float" ? ":float" : ""),
    result.shape.join("x"),
    String(result.tokens),
    String(result.threads),
    result.weights,
    result.microseconds.toFixed(1),
    result.gigabytesPerSecond.toFixed(2),
    result.gigaweightsPerSecond.toFixed(2),
    result.gigaoperationsPerSecond.toFixed(1),
    result.bandwidth.toFixed(1),
    result.ratio.toFixed(2),
  ]);
  console.log(table([...header, "bandwidth", "ratio"], rows));
}
