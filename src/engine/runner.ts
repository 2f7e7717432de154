import type { Backend, Program } from "../backends/backend.ts";
import type { KeyValueType, Operation } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import { HalftoneError } from "../errors.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import { freeBuffers, reserveBuffers, type StepBuffers, type StepInput, uploadStep } from "./buffers.ts";
import { type ForwardPlan, forward, type LogitsWanted, logitRowsOf } from "./forward.ts";
import { KeyValueCache } from "./kvCache.ts";
import { type Reading, readingKey } from "./reading.ts";
import type { LoadedWeights } from "./weights.ts";

/** Recorded steps kept for reuse; decoding and full chunks stay, remainders of prompts come and go. */
const PROGRAMS = 16;

export interface RunnerOptions {
  /** Sequences that the cache holds side by side. */
  readonly sequences: number;
  /** Positions per sequence. */
  readonly context: number;
  /** Most tokens in one step. */
  readonly chunk: number;
  /** How steps read the model that do not say it. */
  readonly reading: Reading;
  /** How keys and values are held. Default `f32`. */
  readonly cacheType?: KeyValueType;
  /** Changes the operations of every step before they are recorded. */
  readonly change?: (operations: Operation[]) => Operation[];
}

/** Runs steps of a loaded decoder: keeps its cache, its buffers and the recorded programs. */
export class Runner {
  readonly spec: DecoderSpec;
  readonly cache: KeyValueCache;
  readonly chunk: number;
  /** How steps read the model that do not say it. */
  readonly reading: Reading;
  readonly #backend: Backend;
  readonly #buffers: StepBuffers;
  readonly #change: (operations: Operation[]) => Operation[];
  /** What steps are recorded from; benchmarks time its parts. */
  readonly forwardPlan: ForwardPlan;
  readonly #programs = new Map<string, Program>();
  #logits: Slot | undefined;

  constructor(spec: DecoderSpec, weights: LoadedWeights, backend: Backend, options: RunnerOptions) {
    this.spec = spec;
    this.chunk = options.chunk;
    this.reading = options.reading;
    this.#backend = backend;
    this.cache = new KeyValueCache(spec, backend, options.sequences, options.context, options.cacheType);
    this.#buffers = reserveBuffers(spec, backend, options.chunk);
    this.#change = options.change ?? ((operations) => operations);
    this.forwardPlan = { spec, weights, cache: this.cache, buffers: this.#buffers };
  }

  /**
   * Runs one step of at most `chunk` tokens.
   * Returns logits, float32 [tokens, vocabulary] for "all", [vocabulary] for "last", empty for "none",
   * [wanted, vocabulary] for a number.
   */
  async step(input: StepInput, wanted: LogitsWanted, reading = this.reading): Promise<Float32Array> {
    const rows = input.ids.length;
    this.#check(input);
    uploadStep(this.spec, this.#backend, this.#buffers, input);
    const logitRows = logitRowsOf(wanted, rows);
    const program = this.#program(rows, wanted, logitRows, reading);
    await this.#backend.run(program);
    if (logitRows === 0) return new Float32Array(0);
    return this.#backend.readFloats(this.#logits!, logitRows * this.spec.vocabularySize);
  }

  dispose(): void {
    for (const program of this.#programs.values()) program.free();
    this.#programs.clear();
    this.cache.free();
    freeBuffers(this.#buffers, this.#backend);
    if (this.#logits) this.#backend.free(this.#logits);
  }

  #check({ ids, positions, sequences }: StepInput): void {
    if (ids.length < 1 || ids.length > this.chunk) {
      throw new RangeError(`a step of ${ids.length} tokens; this runner takes 1 to ${this.chunk}`);
    }
    for (let i = 0; i < ids.length; i++) {
      if (!(ids[i] >= 0 && ids[i] < this.spec.vocabularySize)) {
        throw new HalftoneError(
          `token id ${ids[i]} is outside the vocabulary of ${this.spec.vocabularySize}`,
        );
      }
      const sequence = sequences?.[i] ?? 0;
      if (positions[i] >= this.cache.capacity || sequence >= this.cache.sequences) {
        throw new HalftoneError(
          `position ${positions[i]} is past the context of ${this.cache.capacity} tokens; load the model with a longer context`,
        );
      }
    }
  }

  #program(rows: number, wanted: LogitsWanted, logitRows: number, reading: Reading): Program {
    const bytes = logitRows * this.spec.vocabularySize * 4;
    if (bytes > (this.#logits?.byteLength ?? 0)) {
      // Recorded programs name the old place.
      for (const program of this.#programs.values()) program.free();
      this.#programs.clear();
      if (this.#logits) this.#backend.free(this.#logits);
      this.#logits = this.#backend.reserve(bytes);
    }
    const key = `${rows} ${logitRows} ${readingKey(reading)}`;
    let program = this.#programs.get(key);
    if (program) this.#programs.delete(key);
    else {
      const operations = forward(this.forwardPlan, reading, rows, wanted, this.#logits);
      program = this.#backend.record(this.#change(operations));
    }
    this.#programs.set(key, program);
    if (this.#programs.size > PROGRAMS) {
      const [oldest, unused] = this.#programs.entries().next().value!;
      unused.free();
      this.#programs.delete(oldest);
    }
    return program;
  }
}
