/**
 * Attention of one layer over caches of every type: microseconds, and operations per second.
 *
 * Caches are copied until they exceed 96 MB and taken in turn, so that no processor's cache holds them. The fastest
 * quarter's slowest run: what a shared machine does meanwhile is left out.
 *
 * node bench/attention.ts [--json] [--types f32,f16,int8] [--heads 9/3x64,8/2x64] [--threads 1,2]
 *   [--rows 1x64,1x1024,1x4096,64x1024]   rows of a step, and positions that the last one sees
 */
import { parseArgs } from "node:util";
import type { KeyValueType } from "../src/backends/operation.ts";
import type { WasmBackend } from "../src/backends/wasm/backend.ts";
import { spawnNodeWorker } from "../src/backends/wasm/workers.node.ts";
import { keyValueHeadBytes } from "../src/ops/attention/keyValue.ts";
import { openWasm } from "../src/ops/wasm.ts";
import { fillGaussian } from "../src/quantizers/random.ts";
import { numbers, seconds, table } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    types: { type: "string", default: "f32,f16,int8" },
    heads: { type: "string", default: "9/3x64,8/2x64,32/4x64" },
    rows: { type: "string", default: "1x64,1x160,1x1024,1x4096,8x1024,64x64,64x1024" },
    threads: { type: "string", default: "1,2" },
  },
});

const COLD_BYTES = 96e6;
const MOST_COPIES = 24;
const SAMPLE_SECONDS = 0.2;

interface AttentionResult {
  readonly type: string;
  readonly heads: string;
  readonly rows: number;
  readonly positions: number;
  readonly threads: number;
  readonly microseconds: number;
  readonly gigaoperationsPerSecond: number;
}

const extents = (text: string) => text.split(/[x/]/).map(Number);

function measure(backend: WasmBackend, type: KeyValueType, shape: string, extent: string): AttentionResult {
  const [heads, kvHeads, headSize] = extents(shape);
  const [rows, positions] = extents(extent);
  const size = kvHeads * positions * keyValueHeadBytes(type, headSize);
  const copies = Math.min(MOST_COPIES, Math.ceil(COLD_BYTES / size / 2));
  const slots = Array.from({ length: 2 * copies }, () => backend.allocate(size));
  const [q, out] = [0, 1].map(() => backend.allocate(rows * heads * headSize * 4));
  const [at, sequences] = [0, 1].map(() => backend.allocate(rows * 4));
  backend.upload(q, fillGaussian(new Float32Array(rows * heads * headSize), 1));
  backend.upload(
    at,
    Int32Array.from({ length: rows }, (_, i) => positions - rows + i),
  );
  const programs = Array.from({ length: copies }, (_, i) =>
    backend.record([
      {
        ...{ op: "attention", q, out, rows, heads, kvHeads, headSize, positions: at, sequences },
        cache: { type, keys: slots[2 * i], values: slots[2 * i + 1], capacity: positions },
        ...{ scale: headSize ** -0.5, window: 0, softcap: 0 },
      },
    ]),
  );
  const times: number[] = [];
  const end = performance.now() + 1e3 * SAMPLE_SECONDS;
  for (let i = 0; performance.now() < end || i < 8; i++)
    times.push(seconds(() => backend.runNow(programs[i % copies])));
  const time = times.sort((a, b) => a - b)[times.length >> 2];
  for (const program of programs) program.free();
  for (const slot of [...slots, q, out, at, sequences]) backend.free(slot);
  const operations = 4 * heads * headSize * rows * (positions - (rows - 1) / 2);
  return {
    ...{ type, heads: shape, rows, positions, threads: backend.threads },
    microseconds: time * 1e6,
    gigaoperationsPerSecond: operations / time / 1e9,
  };
}

const results: AttentionResult[] = [];
for (const threads of numbers(flags.threads)) {
  const backend = await openWasm({ threads, spawn: spawnNodeWorker, wholeTeam: true });
  for (const shape of flags.heads.split(",")) {
    for (const extent of flags.rows.split(",")) {
      for (const type of flags.types.split(",") as KeyValueType[])
        results.push(measure(backend, type, shape, extent));
    }
  }
  backend.dispose();
}

if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  const rows = results.map(({ type, heads, microseconds, gigaoperationsPerSecond, ...counts }) => [
    type,
    heads,
    ...[counts.rows, counts.positions, counts.threads].map(String),
    microseconds.toFixed(1),
    gigaoperationsPerSecond.toFixed(1),
  ]);
  console.log(table(["cache", "heads", "rows", "positions", "threads", "us", "GOPS"], rows));
}
