import type { Backend, Program } from "../../backends/backend.ts";
import type { LinearHandle, Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { breather } from "../breathe.ts";
import { divergence, type RowSummary, summarizeRow } from "../evaluate/softmax.ts";
import { DecoderParts } from "../parts.ts";
import type { LoadedWeights } from "../weights.ts";
import type { WeightTensor } from "./tensors.ts";

/** Asks of one sequence after another: how far do the predictions move when one weight tensor has other values? */
export class Trials {
  readonly #spec: DecoderSpec;
  readonly #backend: Backend;
  readonly #weights: LoadedWeights;
  readonly #parts: DecoderParts;
  readonly #logits: Slot;
  readonly #programs = new Map<string, Program>();
  readonly #breathe = breather();
  #ids: readonly number[] = [];
  /** The residual stream that enters each layer, then the head. */
  #streams: Float32Array[] = [];
  #expected: Float32Array = new Float32Array(0);
  #summaries: RowSummary[] = [];

  /** @param tokens of the longest sequence. */
  constructor(spec: DecoderSpec, backend: Backend, weights: LoadedWeights, tokens: number) {
    this.#spec = spec;
    this.#backend = backend;
    this.#weights = weights;
    this.#parts = new DecoderParts(spec, backend, tokens);
    this.#logits = backend.reserve(tokens * spec.vocabularySize * 4);
  }

  /** Runs the unchanged model over a sequence. */
  async start(ids: readonly number[]): Promise<void> {
    const { vocabularySize, hiddenSize, layers } = this.#spec;
    this.#ids = ids;
    this.#parts.start(ids);
    this.#streams = [];
    const keep = async () => {
      this.#streams.push(await this.#backend.readFloats(this.#parts.buffers.hidden, ids.length * hiddenSize));
    };
    await this.#run("embedding");
    await keep();
    for (let index = 0; index < layers.length; index++) {
      await this.#run(index);
      await keep();
    }
    await this.#run("head");
    this.#expected = await this.#backend.readFloats(this.#logits, ids.length * vocabularySize);
    this.#summaries = ids.map((_, i) => summarizeRow(this.#expected, i * vocabularySize, vocabularySize));
  }

  /** Mean Kullback-Leibler divergence in nats per token when a tensor has these values [rows, columns]. */
  async divergence(tensor: WeightTensor, values: Float32Array): Promise<number> {
    const handles = await this.#load(tensor, values);
    try {
      const changed = this.#changed(tensor, handles);
      const { layers } = this.#spec;
      const first = tensor.part === "embedding" ? 0 : tensor.part === "head" ? layers.length : tensor.part;
      if (tensor.part === "embedding") await this.#runOnce("embedding", changed);
      else this.#backend.upload(this.#parts.buffers.hidden, this.#streams[first]);
      for (let index = first; index < layers.length; index++) {
        if (index === tensor.part) await this.#runOnce(index, changed);
        else await this.#run(index);
        await this.#breathe();
      }
      // A tied embedding is the head too.
      if (changed.head !== this.#weights.head) await this.#runOnce("head", changed);
      else await this.#run("head");
      return await this.#meanDivergence();
    } finally {
      for (const handle of handles) this.#backend.freeLinear(handle);
    }
  }

  dispose(): void {
    for (const program of this.#programs.values()) program.free();
    this.#backend.free(this.#logits);
    this.#parts.dispose();
  }

  async #load({ linears, columns }: WeightTensor, values: Float32Array): Promise<LinearHandle[]> {
    const handles: LinearHandle[] = [];
    for (const { rows, firstRow = 0 } of linears) {
      const readRows = async (start: number, end: number) =>
        values.subarray((firstRow + start) * columns, (firstRow + end) * columns);
      handles.push(await this.#backend.loadLinear({ scheme: "f32", rows, columns, readRows }));
    }
    return handles;
  }

  #changed({ part, linears }: WeightTensor, handles: readonly LinearHandle[]): LoadedWeights {
    const weights = this.#weights;
    if (part === "head") return { ...weights, head: handles[0] };
    if (part === "embedding") {
      const tied = weights.head === weights.embedding;
      return { ...weights, embedding: handles[0], head: tied ? handles[0] : weights.head };
    }
    const changed = new Map(weights.linears);
    linears.forEach((linear, i) => {
      changed.set(linear, { ...changed.get(linear)!, handle: handles[i] });
    });
    return { ...weights, linears: changed };
  }

  async #meanDivergence(): Promise<number> {
    const { vocabularySize: size } = this.#spec;
    const rows = this.#ids.length;
    const logits = await this.#backend.readFloats(this.#logits, rows * size);
    let sum = 0;
    for (let i = 0; i < rows; i++) {
      const q = summarizeRow(logits, i * size, size);
      sum += divergence(this.#expected, this.#summaries[i], logits, q, i * size, size);
    }
    return sum / rows;
  }

  /** Runs a part with the weights as they are. */
  async #run(part: WeightTensor["part"]): Promise<void> {
    const key = `${part} ${this.#ids.length}`;
    const program = this.#programs.get(key) ?? this.#backend.record(this.#operations(part, this.#weights));
    this.#programs.set(key, program);
    await this.#backend.run(program);
  }

  async #runOnce(part: WeightTensor["part"], weights: LoadedWeights): Promise<void> {
    const program = this.#backend.record(this.#operations(part, weights));
    try {
      await this.#backend.run(program);
    } finally {
      program.free();
    }
  }

  #operations(part: WeightTensor["part"], weights: LoadedWeights): Operation[] {
    const rows = this.#ids.length;
    if (part === "embedding") return this.#parts.embed(weights, rows);
    if (part === "head") return this.#parts.head(weights, rows, this.#logits);
    return this.#parts.layer(part, weights, rows);
  }
}
