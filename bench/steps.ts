/**
 * Milliseconds of a step over M rows by how activations are read: what speculation can gain follows from it
 * (docs/speculation.md). The fastest of a few rounds, in which all take turns.
 *
 * node bench/steps.ts MODEL [--json] [--activations int8,int16,float] [--rows 1,2,4,8,16,32,64] [--threads 1] [--rounds 5]
 */
import { parseArgs } from "node:util";
import type { ActivationPrecision } from "../src/backends/operation.ts";
import { load } from "../src/node.ts";
import { numbers, table } from "./measure.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    activations: { type: "string", default: "int8,int16,float" },
    rows: { type: "string", default: "1,2,4,5,8,16,32,64" },
    threads: { type: "string", default: "1" },
    rounds: { type: "string", default: "5" },
  },
});
const rows = numbers(flags.rows);
const readings = flags.activations.split(",") as ActivationPrecision[];
/** Positions before the step's. */
const BEHIND = 40;

const chunk = Math.max(...rows);
const threads = Number(flags.threads);
const model = await load(positionals[0], { threads, chunk, context: BEHIND + chunk });

async function milliseconds(activations: ActivationPrecision, count: number): Promise<number> {
  const ids = Array.from({ length: count }, (_, i) => i + 5);
  const positions = ids.map((_, i) => BEHIND + i);
  const step = () => model.runner.step({ ids, positions }, "all", { ...model.runner.reading, activations });
  await step();
  const repeats = Math.ceil(8 / count);
  const started = performance.now();
  for (let i = 0; i < repeats; i++) await step();
  return (performance.now() - started) / repeats;
}

const results = readings.map((activations) => ({ activations, milliseconds: rows.map(() => Infinity) }));
for (let round = 0; round < Number(flags.rounds); round++) {
  for (const { activations, milliseconds: best } of results) {
    for (const [i, count] of rows.entries())
      best[i] = Math.min(best[i], await milliseconds(activations, count));
  }
}
model.dispose();

if (flags.json) console.log(JSON.stringify({ model: positionals[0], threads, rows, results }, null, 2));
else {
  const lines = results.map(({ activations, milliseconds: best }) => [
    activations,
    ...best.map((time) => time.toFixed(2)),
  ]);
  console.log(table(["rows", ...rows.map(String)], lines));
}
