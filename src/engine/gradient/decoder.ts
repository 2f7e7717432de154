/**
 * Gradients of a decoder over token sequences, a part at a time: only one layer's weights are in memory, and the
 * residual streams between layers, from which each layer is run again on the way back.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Slot } from "../../backends/slot.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec, LinearSpec, NormSpec } from "../../models/decoder.ts";
import { breather } from "../breathe.ts";
import { DecoderParts, type Part } from "../parts.ts";
import { longestOf, type Sequences } from "../sequences.ts";
import { type LoadedPart, loadPart } from "./loadPart.ts";
import { type GradientObserver, Tape } from "./tape.ts";

/** Logits kept at a time, as bytes. */
const LOGITS_BYTES = 16 << 20;

/** Rows of logits to compute at a time. */
export function logitRows(vocabularySize: number): number {
  return Math.max(1, Math.floor(LOGITS_BYTES / (4 * vocabularySize)));
}

/**
 * The gradient of a loss by the logits [rows, vocabulary] of a sequence's tokens from number `first` on. Gradients of a
 * sequence are those of the sum over its tokens.
 */
export type LogitsGradient = (
  logits: Float32Array,
  sequence: number,
  first: number,
) => Float32Array | Promise<Float32Array>;

/** What a pass finds, parts from the last to the first, each for one sequence after another. */
export interface DecoderObserver {
  /** The values [rows, columns] of a weight, before anything else about it. */
  weight?(linear: LinearSpec, values: Float32Array): void;
  /**
   * Inputs [rows, columns] of a linear layer and the gradient of its outputs: dW = dOut^T . input, and the bias' gradient
   * is the sum of dOut's rows. The head comes in several calls, a few tokens each.
   */
  linear?(
    linear: LinearSpec,
    sequence: number,
    input: Float32Array,
    dOut: Float32Array,
  ): Promise<void> | void;
  /** Outputs [rows, linear.rows] of a linear layer, bias included, and their gradient; of the head as for `linear`. */
  output?(
    linear: LinearSpec,
    sequence: number,
    output: Float32Array,
    dOut: Float32Array,
  ): Promise<void> | void;
  /** The gradient of a norm's weight; the last norm comes in several calls. */
  norm?(norm: NormSpec, sequence: number, dWeight: Float32Array): void;
  /** The gradient of the embedding's rows that the sequence's tokens looked up, [tokens, hidden]. */
  embed?(sequence: number, dRows: Float32Array): void;
}

export interface DecoderPass {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly sequences: Sequences;
  /** Called after every part of every sequence, forth and back. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface GradientPass extends DecoderPass {
  readonly loss: LogitsGradient;
  readonly observer: DecoderObserver;
}

/** Residual streams kept at a time, as bytes: the weights are read once for so many sequences. */
const STREAM_BYTES = 2 ** 29;

/** How many sequences a pass should take. */
export function sequencesAtOnce(spec: DecoderSpec, sequences: Sequences): number {
  const longest = longestOf(sequences);
  const bytes = 4 * longest * spec.hiddenSize * (spec.layers.length + 1);
  return Math.max(1, Math.floor(STREAM_BYTES / bytes));
}

/** Runs all sequences forth and back. */
export async function decoderGradient(pass: GradientPass): Promise<void> {
  const { layers } = pass.spec;
  const { embed, weight } = pass.observer;
  const embedding = embed || weight;
  const total = pass.sequences.length * (2 * layers.length + (embedding ? 3 : 2));
  await withWalk(pass, total, async (walk) => {
    await walk.forth("embedding", true);
    for (let index = 0; index < layers.length; index++) await walk.forth(index, true);
    await walk.back("head", pass);
    for (let index = layers.length - 1; index >= 0; index--) await walk.back(index, pass);
    if (embedding) await walk.back("embedding", pass);
  });
}

/** Runs all sequences through embedding and layers: the residual streams [tokens, hidden] that the last norm reads. */
export async function lastStreams(pass: DecoderPass): Promise<Float32Array[]> {
  const { layers } = pass.spec;
  const total = pass.sequences.length * (layers.length + 1);
  return withWalk(pass, total, async (walk) => {
    await walk.forth("embedding", false);
    for (let index = 0; index < layers.length; index++) await walk.forth(index, false);
    return walk.lastStreams;
  });
}

async function withWalk<T>(pass: DecoderPass, total: number, work: (walk: Walk) => Promise<T>): Promise<T> {
  const { spec, backend, sequences } = pass;
  const longest = longestOf(sequences);
  const parts = new DecoderParts(spec, backend, longest);
  try {
    return await work(new Walk(pass, parts, total));
  } finally {
    parts.dispose();
  }
}

class Walk {
  readonly #pass: DecoderPass;
  readonly #parts: DecoderParts;
  readonly #breathe = breather();
  /** By sequence: the residual streams that left the parts so far. */
  readonly #streams: Float32Array[][];
  /** By sequence: the gradient of the residual stream at this point of the way back. */
  readonly #gradients: Float32Array[] = [];
  readonly #total: number;
  #done = 0;

  constructor(pass: DecoderPass, parts: DecoderParts, total: number) {
    this.#pass = pass;
    this.#parts = parts;
    this.#total = total;
    this.#streams = pass.sequences.map(() => []);
  }

  get lastStreams(): Float32Array[] {
    return this.#streams.map((streams) => streams.at(-1)!);
  }

  /** @param keep the streams before this part too, for the way back. */
  async forth(part: "embedding" | number, keep: boolean): Promise<void> {
    const { backend, spec } = this.#pass;
    await this.#withPart(part, undefined, async (loaded, ids, s) => {
      const { hidden } = this.#parts.buffers;
      this.#enter(s);
      const program = backend.record(this.#operations(part, loaded, ids.length));
      await backend.run(program);
      program.free();
      if (!keep) this.#streams[s].pop();
      this.#streams[s].push(await backend.readFloats(hidden, ids.length * spec.hiddenSize));
    });
  }

  async back(part: Part, { observer, loss }: GradientPass): Promise<void> {
    const { hidden } = this.#parts.buffers;
    await this.#withPart(part, observer, async (loaded, ids, s) => {
      const found = namedObserver(observer, loaded, s);
      if (part === "head") {
        this.#gradients[s] = await this.#backHead(loaded, ids, s, found, loss);
        return;
      }
      const tape = new Tape(this.#pass.backend, loaded.transposed);
      // The last stream left this part; the one before entered it.
      this.#streams[s].pop();
      this.#enter(s);
      await tape.run(this.#operations(part, loaded, ids.length), found.output !== undefined);
      this.#gradients[s] = await tape.backward(hidden, this.#gradients[s], hidden, found);
    });
  }

  /** Brings the last stream of a sequence into the buffers; the embedding has none before it. */
  #enter(s: number): void {
    const stream = this.#streams[s].at(-1);
    if (stream) this.#pass.backend.upload(this.#parts.buffers.hidden, stream);
  }

  /** A few tokens at a time: logits may be larger than all else. */
  async #backHead(
    loaded: LoadedPart,
    ids: readonly number[],
    s: number,
    found: GradientObserver,
    loss: LogitsGradient,
  ): Promise<Float32Array> {
    const { spec, backend } = this.#pass;
    const { hiddenSize, vocabularySize } = spec;
    const { hidden } = this.#parts.buffers;
    const stream = this.#streams[s].at(-1)!;
    const gradient = new Float32Array(stream.length);
    const step = Math.min(ids.length, logitRows(vocabularySize));
    const logits = backend.reserve(step * vocabularySize * 4);
    for (let at = 0; at < ids.length; at += step) {
      const rows = Math.min(step, ids.length - at);
      backend.upload(hidden, stream.subarray(at * hiddenSize, (at + rows) * hiddenSize));
      const tape = new Tape(backend, loaded.transposed);
      await tape.run(this.#parts.head(loaded.weights, rows, logits), found.output !== undefined);
      const dLogits = await loss(await backend.readFloats(logits, rows * vocabularySize), s, at);
      gradient.set(await tape.backward(logits, dLogits, hidden, found), at * hiddenSize);
      await this.#breathe();
    }
    backend.free(logits);
    return gradient;
  }

  #operations(part: "embedding" | number, { weights }: LoadedPart, rows: number) {
    return part === "embedding" ? this.#parts.embed(weights, rows) : this.#parts.layer(part, weights, rows);
  }

  /** Loads a part, with its transposes when an observer goes back, and does its work for one sequence after another. */
  async #withPart(
    part: Part,
    observer: DecoderObserver | undefined,
    work: (loaded: LoadedPart, ids: readonly number[], s: number) => Promise<void>,
  ): Promise<void> {
    const { spec, checkpoint, backend, sequences, signal, onProgress } = this.#pass;
    const onWeight = observer?.weight?.bind(observer);
    const back = observer !== undefined;
    const loaded = await loadPart(spec, part, checkpoint, backend, { back, onWeight });
    try {
      for (const [s, ids] of sequences.entries()) {
        signal?.throwIfAborted();
        this.#parts.start(ids);
        await work(loaded, ids, s);
        onProgress?.(++this.#done, this.#total);
        await this.#breathe();
      }
    } finally {
      loaded.free();
    }
  }
}

/** Names what a tape finds. */
function namedObserver(
  observer: DecoderObserver,
  { linearOf, normOf }: LoadedPart,
  s: number,
): GradientObserver {
  return {
    linear: (weight, input, dOut) => observer.linear?.(linearOf.get(weight)!, s, input, dOut),
    output:
      observer.output &&
      ((weight, output, dOut) => observer.output?.(linearOf.get(weight)!, s, output, dOut)),
    norm: observer.norm && ((weight: Slot, dWeight) => observer.norm?.(normOf.get(weight)!, s, dWeight)),
    embed: (dRows) => observer.embed?.(s, dRows),
  };
}
