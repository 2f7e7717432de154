/**
 * Halftone beside llama.cpp (node-llama-cpp's binary, and wllama in Chromium) on the same machine: prefill and decode,
 * taken in turn so that drift hits all alike, medians.
 *
 * npm install --prefix bench/peers --no-package-lock
 * node bench/peers/run.ts --model FOLDER --gguf FILE [--threads 1,2] [--prompt 128,512] [--decode 64] [--rounds 5]
 *   [--no-wllama] [--json]
 */
import { parseArgs } from "node:util";
import { median } from "../../src/median.ts";
import { numbers, table } from "../measure.ts";
import { openHalftone } from "./halftone.ts";
import { openNodeLlama } from "./nodeLlama.ts";
import type { Session } from "./peer.ts";
import { openWllama } from "./wllama.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string" },
    gguf: { type: "string" },
    threads: { type: "string", default: "1,2" },
    prompt: { type: "string", default: "128,512" },
    decode: { type: "string", default: "64" },
    rounds: { type: "string", default: "5" },
    "no-wllama": { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const { model, gguf } = flags;
if (!model || !gguf) throw new Error("name a quantized folder (--model) and a GGUF file (--gguf)");
const prompts = numbers(flags.prompt);
const decode = Number(flags.decode);
const context = Math.max(...prompts) + decode;

interface Result {
  readonly engine: string;
  readonly threads: number;
  readonly prompt: number;
  readonly bytes: number;
  /** Tokens per second, medians. */
  readonly prefill: number;
  readonly decode: number;
}

async function measureThreads(folder: string, file: string, threads: number): Promise<Result[]> {
  const sessions: Session[] = [await openHalftone(folder, threads, context)];
  for (const open of flags["no-wllama"] ? [openNodeLlama] : [openNodeLlama, openWllama]) {
    const session = await open(file, threads, context);
    if (session) sessions.push(session);
    else console.error(`${open.name.slice(4)}: not installed, left out`);
  }
  const results: Result[] = [];
  for (const prompt of prompts) {
    const speeds = sessions.map((): { prefill: number; decode: number }[] => []);
    // The first round warms up.
    for (let round = 0; round <= Number(flags.rounds); round++) {
      for (const [i, session] of sessions.entries()) {
        const speed = await session.measure(prompt, decode);
        if (round > 0) speeds[i].push(speed);
      }
    }
    for (const [i, { name: engine, bytes }] of sessions.entries()) {
      const [prefill, decoded] = [
        median(speeds[i].map((s) => s.prefill)),
        median(speeds[i].map((s) => s.decode)),
      ];
      results.push({ engine, threads, prompt, bytes, prefill, decode: decoded });
    }
  }
  for (const session of sessions) await session.close();
  return results;
}

const results: Result[] = [];
for (const threads of numbers(flags.threads)) results.push(...(await measureThreads(model, gguf, threads)));
if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  const rows = results.map(({ engine, threads, prompt, bytes, ...speed }) => {
    const own = results.find((r) => r.engine === "halftone" && r.threads === threads && r.prompt === prompt)!;
    const ratio = (value: number, ours: number) => `${value.toFixed(1)} (${(ours / value).toFixed(2)}x)`;
    return [
      engine,
      String(threads),
      (bytes / 1e6).toFixed(1),
      String(prompt),
      ratio(speed.prefill, own.prefill),
      ratio(speed.decode, own.decode),
    ];
  });
  const header = ["engine", "threads", "MB", "prompt", "prefill tokens/s (ours over it)", "decode"];
  console.log(table(header, rows));
}
process.exit(0);
