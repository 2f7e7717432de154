import { availableParallelism } from "node:os";
import { breather } from "../engine/breathe.ts";
import type { Model } from "../engine/model.ts";
import { UsageError } from "../errors.ts";
import { median } from "../median.ts";
import { benchSpeculation, describeSpeculation, type SpeculationMeasurement } from "./benchSpeculation.ts";
import type { benchFlags } from "./flags.ts";
import { significant } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { loadModel } from "./model.ts";
import { print, printJson, table } from "./output.ts";
import { progressLine } from "./progress.ts";
import type { Invocation } from "./verb.ts";

interface Measurement {
  readonly phase: "prefill" | "decode";
  readonly threads: number;
  readonly tokens: number;
  readonly tokensPerSecond: number;
  /** Bytes of weights read. */
  readonly bytesPerSecond: number;
}

/** What the machine can read at most: the bound of decoding. */
interface Bandwidth {
  readonly threads: number;
  readonly bytesPerSecond: number;
}

/** The median of this many runs counts, after one that warms up. */
const RUNS = 3;

/** `halftone bench`: how fast a model reads and writes, by thread count. */
export async function bench({ operands: [name], flags }: Invocation<typeof benchFlags>): Promise<void> {
  const counts = flags.threads ?? [...new Set([1, availableParallelism()])];
  const { promptTokens, decodeTokens, json, speculate, draft, batch } = flags;
  const line = progressLine("measuring");
  const signal = interruptible();
  const results: Measurement[] = [];
  const bandwidths: Bandwidth[] = [];
  const speculation: SpeculationMeasurement[] = [];
  const runs = counts.length * (RUNS + 1);
  for (const threads of counts) {
    const model = await loadModel(name, { ...flags, threads, sequences: batch });
    try {
      checkLength(model, promptTokens + decodeTokens);
      const times: { prefill: number; decode: number }[] = [];
      for (let run = 0; run <= RUNS; run++) {
        times.push(await measure(model, promptTokens, decodeTokens, signal));
        line.update((results.length / 2) * (RUNS + 1) + run + 1, runs, `${threads} threads`);
      }
      results.push(...summarize(model, threads, promptTokens, decodeTokens, times.slice(1)));
      const bytesPerSecond = model.backend.readBandwidth?.();
      if (bytesPerSecond !== undefined) bandwidths.push({ threads, bytesPerSecond });
      if (speculate !== "off") {
        const extent = { threads, batch, tokens: decodeTokens, signal };
        speculation.push(await benchSpeculation(model, { speculate, draft }, extent));
      }
    } finally {
      line.clear();
      model.dispose();
    }
  }
  if (json) {
    const drafted = speculate === "off" ? {} : { speculation };
    return await printJson({ results, readBandwidth: bandwidths, ...drafted });
  }
  const rows = results.map(({ phase, threads, tokens, tokensPerSecond, bytesPerSecond }) => [
    phase,
    String(threads),
    String(tokens),
    significant(tokensPerSecond),
    significant(bytesPerSecond / 1e9),
  ]);
  const header = ["phase", "threads", "tokens", "tokens/s", "GB/s of weights"];
  await print(table(header, rows, header.slice(1)));
  for (const { threads, bytesPerSecond } of bandwidths) {
    await print(
      `${threads} thread${threads > 1 ? "s" : ""} read ${significant(bytesPerSecond / 1e9)} GB/s from memory\n`,
    );
  }
  for (const measured of speculation) await print(describeSpeculation(measured));
}

function checkLength(model: Model, tokens: number): void {
  if (tokens <= model.context) return;
  throw new UsageError(
    `--prompt-tokens and --decode-tokens make ${tokens}; this model's context is ${model.context}`,
  );
}

/** Seconds of one prompt and one answer; the ids do not matter to the time. */
async function measure(model: Model, prompt: number, decode: number, signal: AbortSignal) {
  const breathe = breather();
  const { runner, spec } = model;
  const ids = Array.from({ length: prompt + decode }, (_, i) => (i * 7919 + 1) % spec.vocabularySize);
  const started = performance.now();
  for (let at = 0; at < prompt; at += runner.chunk) {
    const part = ids.slice(at, Math.min(at + runner.chunk, prompt));
    const last = at + part.length === prompt;
    await runner.step({ ids: part, positions: part.map((_, i) => at + i) }, last ? "last" : "none");
    await breathe();
    signal.throwIfAborted();
  }
  const prefilled = performance.now();
  for (let at = prompt; at < prompt + decode; at++) {
    await runner.step({ ids: [ids[at]], positions: [at] }, "last");
    await breathe();
    signal.throwIfAborted();
  }
  const ended = performance.now();
  return { prefill: (prefilled - started) / 1000, decode: (ended - prefilled) / 1000 };
}

function summarize(
  model: Model,
  threads: number,
  prompt: number,
  decode: number,
  times: readonly { prefill: number; decode: number }[],
): Measurement[] {
  const { embedding, head, byteLength } = model.weights;
  // A token reads one row of the embedding, which counts only where it is the head too.
  const perToken = byteLength - (head === embedding ? 0 : embedding.byteLength);
  const steps = Math.ceil(prompt / model.runner.chunk);
  const prefillBytes = steps * (perToken - head.byteLength) + head.byteLength;
  const prefill = median(times.map((time) => time.prefill));
  const decoding = median(times.map((time) => time.decode));
  return [
    {
      phase: "prefill",
      threads,
      tokens: prompt,
      tokensPerSecond: prompt / prefill,
      bytesPerSecond: prefillBytes / prefill,
    },
    {
      phase: "decode",
      threads,
      tokens: decode,
      tokensPerSecond: decode / decoding,
      bytesPerSecond: (perToken * decode) / decoding,
    },
  ];
}
