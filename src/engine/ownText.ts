/**
 * Text that a model makes up: token sequences drawn from its own predictions, which show what it knows where no
 * text is at hand.
 *
 * @module
 */
import type { Backend } from "../backends/backend.ts";
import type { Operation } from "../backends/operation.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { MemoryError } from "../errors.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import { createTokenizer } from "../text/tokenizer.ts";
import { availableMemory } from "./availableMemory.ts";
import { KeyValueCache } from "./kvCache.ts";
import { floatSchemeFor, parametersOf } from "./model.ts";
import { Runner } from "./runner.ts";
import { createSampler } from "./sampler/sampler.ts";
import { freeWeights, type LoadedWeights, loadWeights } from "./weights.ts";

interface SampleOptions {
  readonly sequences: number;
  /** Tokens of a sequence, the first included. */
  readonly sequenceLength: number;
  /** The token that every sequence begins with, see {@link firstToken}. */
  readonly first: number;
  readonly seed: number;
  /** Called after every step with the number of its tokens. */
  readonly after?: (rows: number) => Promise<void>;
  /** Called after every token of all sequences drawn side by side. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface OwnTextRun extends SampleOptions {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  /** Holds nothing else. */
  readonly backend: Backend;
  /** Makes what watches the steps, of at most `rows` tokens. */
  readonly watch?: (weights: LoadedWeights, rows: number) => StepWatcher;
}

/** Sees what goes on within steps. */
export interface StepWatcher {
  /** Adds operations to a step. */
  change(operations: Operation[]): Operation[];
  /** Called after each step with the number of its tokens. */
  after(rows: number): Promise<void>;
  free(): void;
}

/** Sequences decoded side by side at most: 32 take two thirds of the time of 16 and as much as 64. */
const AT_ONCE = 32;
/** Bytes of their cache, which lies beside the float weights. */
const CACHE_BYTES = 2 ** 29;

/**
 * Sequences that a float model makes up at temperature 1. They depend neither on the backend's threads nor on how many
 * there are. Throws a MemoryError for a model that the backend, or what memory is free, cannot hold whole.
 */
export async function sampleText(run: OwnTextRun): Promise<number[][]> {
  try {
    return await sampleWhole(run);
  } catch (cause) {
    if (!(cause instanceof MemoryError)) throw cause;
    throw new MemoryError(
      `${run.checkpoint.source}: too large to make up text, which takes the whole float model in memory (${cause.message}); give a text, which goes through it a layer at a time`,
      { cause },
    );
  }
}

async function sampleWhole(run: OwnTextRun): Promise<number[][]> {
  const { spec, checkpoint, backend, sequenceLength, seed, onProgress } = run;
  const scheme = floatSchemeFor(spec);
  const bytes = parametersOf(spec) * (scheme === "f32" ? 4 : 2);
  const free = availableMemory();
  if (bytes > free) throw new MemoryError(`${gigabytes(bytes)} do not fit into ${gigabytes(free)} of memory`);
  const weights = await loadWeights(spec, checkpoint, backend, scheme);
  const fitting = Math.floor(CACHE_BYTES / sequenceLength / KeyValueCache.bytesPerPosition(spec, "f32"));
  const atOnce = Math.min(AT_ONCE, run.sequences, Math.max(1, fitting));
  const reading = { activations: "float" } as const;
  const shape = { sequences: atOnce, context: sequenceLength, chunk: atOnce };
  const watcher = run.watch?.(weights, atOnce);
  const change = watcher && ((operations: Operation[]) => watcher.change(operations));
  const after = watcher && ((rows: number) => watcher.after(rows));
  const runner = new Runner(spec, weights, backend, { ...shape, reading, change });
  const all: number[][] = [];
  try {
    for (let at = 0; at < run.sequences; at += atOnce) {
      const sequences = Math.min(atOnce, run.sequences - at);
      const report = (done: number, total: number) =>
        onProgress?.(at * total + sequences * done, run.sequences * total);
      const drawn = { ...run, sequences, seed: seed + at, after, onProgress: report };
      all.push(...(await sampleSequences(runner, drawn)));
    }
  } finally {
    runner.dispose();
    watcher?.free();
    freeWeights(weights, backend);
  }
  return all;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** Sequences drawn side by side by a runner that holds at least as many. */
export async function sampleSequences(runner: Runner, options: SampleOptions): Promise<number[][]> {
  const { sequences, sequenceLength: length, first, seed, after, onProgress, signal } = options;
  const { vocabularySize } = runner.spec;
  const samplers = Array.from({ length: sequences }, (_, s) => createSampler({ seed: seed + s }));
  const ids = samplers.map(() => [first]);
  const places = samplers.map((_, s) => s);
  for (let position = 0; position + 1 < length; position++) {
    signal?.throwIfAborted();
    const logits = await runner.step(
      {
        ids: ids.map((sequence) => sequence[position]),
        positions: places.map(() => position),
        sequences: places,
        length,
      },
      "all",
    );
    await after?.(sequences);
    for (const s of places) {
      const row = logits.subarray(s * vocabularySize, (s + 1) * vocabularySize);
      ids[s].push(samplers[s].sample(row, { prompt: [], generated: [] }));
    }
    onProgress?.(position + 1, length - 1);
  }
  return ids;
}

/** The beginning of a sequence that a model makes up: BOS, or what it has instead. */
export function firstToken({ tokenizer, generationConfig }: Checkpoint): number {
  if (!tokenizer) return 0;
  const { bosId, eosIds } = createTokenizer(tokenizer, generationConfig);
  return bosId ?? [...eosIds][0] ?? 0;
}
