import type { Backend, Program } from "../../backends/backend.ts";
import type { LinearHandle, Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { breather } from "../breathe.ts";
import { divergence, type RowSummary, summarizeRow } from "../evaluate/softmax.ts";
import { loadValues } from "../gradient/product.ts";
import { DecoderParts, type Part } from "../parts.ts";
import type { LoadedWeights } from "../weights.ts";
import type { WeightTensor } from "./tensors.ts";

/** Other values [rows, columns] for a weight tensor. */
export interface Change {
  readonly tensor: WeightTensor;
  readonly values: Float32Array;
}

/** Asks of one sequence after another: how far do the predictions move when weight tensors have other values? */
export class Trials {
  readonly #spec: DecoderSpec;
  readonly #backend: Backend;
  readonly #weights: LoadedWeights;
  readonly #parts: DecoderParts;
  readonly #logits: Slot;
  readonly #programs = new Map<string, Program>();
  /** Around which changes are made, where it is not the unchanged model. */
  #base: LoadedWeights | undefined;
  readonly #baseHandles: LinearHandle[] = [];
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

  /** Changes are from now on made around a model with these values; divergence stays that from the unchanged model. */
  async around(changes: readonly Change[]): Promise<void> {
    this.#base = await this.#changed(changes, this.#baseHandles);
  }

  /** Runs the unchanged model over a sequence. */
  async start(ids: readonly number[]): Promise<void> {
    const { vocabularySize } = this.#spec;
    this.#ids = ids;
    this.#parts.start(ids);
    await this.#runAll(this.#weights);
    this.#expected = await this.#backend.readFloats(this.#logits, ids.length * vocabularySize);
    this.#summaries = ids.map((_, i) => summarizeRow(this.#expected, i * vocabularySize, vocabularySize));
    if (this.#base) await this.#runAll(this.#base);
  }

  /** Runs a model and keeps its residual streams. */
  async #runAll(weights: LoadedWeights): Promise<void> {
    const { hiddenSize, layers } = this.#spec;
    const { hidden } = this.#parts.buffers;
    this.#streams = [];
    for (const part of ["embedding", ...layers.keys()] as const) {
      await this.#run(part, weights);
      this.#streams.push(await this.#backend.readFloats(hidden, this.#ids.length * hiddenSize));
    }
    await this.#run("head", weights);
  }

  /** Mean Kullback-Leibler divergence in nats per token when tensors have other values. */
  async divergence(changes: readonly Change[]): Promise<number> {
    const handles: LinearHandle[] = [];
    const base = this.#base ?? this.#weights;
    try {
      const weights = await this.#changed(changes, handles);
      const { layers } = this.#spec;
      const parts = new Set(changes.map(({ tensor }) => tensor.part));
      let first = 0;
      if (parts.has("embedding")) await this.#runOnce("embedding", weights);
      else {
        while (first < layers.length && !parts.has(first)) first++;
        this.#backend.upload(this.#parts.buffers.hidden, this.#streams[first]);
      }
      for (let index = first; index < layers.length; index++) {
        if (parts.has(index)) await this.#runOnce(index, weights);
        else await this.#run(index, base);
        await this.#breathe();
      }
      // A tied embedding is the head too.
      if (weights.head !== base.head) await this.#runOnce("head", weights);
      else await this.#run("head", base);
      return await this.#meanDivergence();
    } finally {
      for (const handle of handles) this.#backend.freeLinear(handle);
    }
  }

  dispose(): void {
    for (const program of this.#programs.values()) program.free();
    for (const handle of this.#baseHandles) this.#backend.freeLinear(handle);
    this.#backend.free(this.#logits);
    this.#parts.dispose();
  }

  /** The base with some weights replaced; `handles` takes what has to be freed. */
  async #changed(changes: readonly Change[], handles: LinearHandle[]): Promise<LoadedWeights> {
    const base = this.#base ?? this.#weights;
    let { embedding, head } = base;
    const tied = head === embedding;
    const linears = new Map(base.linears);
    for (const { tensor, values } of changes) {
      const { columns } = tensor;
      for (const linear of tensor.linears) {
        const { rows, firstRow = 0 } = linear;
        const part = values.subarray(firstRow * columns, (firstRow + rows) * columns);
        const handle = await loadValues(this.#backend, part, rows, columns);
        handles.push(handle);
        if (tensor.part === "embedding") embedding = handle;
        else if (tensor.part === "head") head = handle;
        else linears.set(linear, { ...linears.get(linear)!, handle });
      }
    }
    return { ...base, embedding, head: tied ? embedding : head, linears };
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

  /** Runs a part of the unchanged model or of the base. */
  async #run(part: Part, weights: LoadedWeights): Promise<void> {
    const key = `${part} ${this.#ids.length} ${weights === this.#base}`;
    const program = this.#programs.get(key) ?? this.#backend.record(this.#operations(part, weights));
    this.#programs.set(key, program);
    await this.#backend.run(program);
  }

  async #runOnce(part: Part, weights: LoadedWeights): Promise<void> {
    const program = this.#backend.record(this.#operations(part, weights));
    try {
      await this.#backend.run(program);
    } finally {
      program.free();
    }
  }

  #operations(part: Part, weights: LoadedWeights): Operation[] {
    const rows = this.#ids.length;
    if (part === "embedding") return this.#parts.embed(weights, rows);
    if (part === "head") return this.#parts.head(weights, rows, this.#logits);
    return this.#parts.layer(part, weights, rows);
  }
}
