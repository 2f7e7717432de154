/**
 * Calibration runs a decoder one layer at a time over all tokens, with the hidden states of every token at hand:
 * only one layer's weights are in memory, and each layer may see what the quantized layers before it give.
 *
 * @module
 */
import type { Backend, Program } from "../../backends/backend.ts";
import type { LinearHandle, Operation } from "../../backends/operation.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { LAYER_KINDS } from "../../compensation/groups.ts";
import { channelsOf } from "../../compensation/settings.ts";
import { groupBy } from "../../groupBy.ts";
import type { DecoderSpec, LinearSpec } from "../../models/decoder.ts";
import { breather } from "../breathe.ts";
import { freeBuffers, reserveBuffers, type StepBuffers, uploadStep } from "../buffers.ts";
import { forward } from "../forward.ts";
import { KeyValueCache } from "../kvCache.ts";
import { longestOf, type Sequences, tokensOf } from "../sequences.ts";
import { type LoadedWeights, linearWeights, loadLayers } from "../weights.ts";
import { gramsOf, type ObserveOptions, type WatchedInput, type WatchedSums } from "./watchedInput.ts";

/** Tokens of one step: activations of a few megabytes, weights read seldom. */
const STEP_ROWS = 256;

/** What the tokens say of one input: x^T x summed over all of them. */
export interface InputGram {
  /** Weight tensors that multiply this input. */
  readonly weights: readonly string[];
  readonly columns: number;
  /** float32 [columns, columns], upper triangle. */
  readonly sums: Float32Array;
}

/** One layer in the backend. */
export interface LoadedLayer {
  readonly spec: DecoderSpec;
  readonly weights: LoadedWeights;
  readonly names: ReadonlyMap<LinearHandle, string>;
}

export interface RunOptions {
  readonly change?: (operations: Operation[]) => Operation[];
  /** Called before each step with its first token and their number. */
  readonly enter?: (row: number, rows: number) => void;
  /** Called after each step with the number of its tokens. */
  readonly after?: (rows: number) => Promise<void>;
  /** Replace the hidden states. */
  readonly keep: boolean;
  readonly signal?: AbortSignal;
}

export class LayerPass {
  readonly spec: DecoderSpec;
  readonly tokens: number;
  readonly backend: Backend;
  readonly #checkpoint: Checkpoint;
  readonly #sequences: Sequences;
  readonly #buffers: StepBuffers;
  readonly #capacity: number;

  /** @param sequences token ids, each sequence run from an empty cache. */
  constructor(spec: DecoderSpec, checkpoint: Checkpoint, backend: Backend, sequences: Sequences) {
    this.spec = spec;
    this.#checkpoint = checkpoint;
    this.backend = backend;
    this.#sequences = sequences;
    this.tokens = tokensOf(sequences);
    this.#capacity = longestOf(sequences);
    this.#buffers = reserveBuffers(spec, backend, Math.min(STEP_ROWS, this.#capacity));
  }

  /** The hidden states that enter the first layer, float32 [tokens, hidden]. */
  async embed(signal?: AbortSignal): Promise<Float32Array> {
    const spec = { ...this.spec, layers: [] };
    const source = await linearWeights(spec.embedding, this.#checkpoint, undefined, "f32");
    const embedding = await this.backend.loadLinear(source);
    const weights = {
      embedding,
      head: embedding,
      linears: new Map(),
      norms: new Map(),
      fused: new Map(),
      byteLength: 0,
    };
    const layer: LoadedLayer = { spec, weights, names: new Map() };
    const hidden = new Float32Array(this.tokens * spec.hiddenSize);
    await this.run(layer, hidden, { keep: true, signal });
    this.backend.freeLinear(embedding);
    return hidden;
  }

  /** Brings a layer into the backend, some of its weights replaced by float values [rows, columns] by tensor name. */
  async load(index: number, replaced: ReadonlyMap<string, Float32Array> = new Map()): Promise<LoadedLayer> {
    const spec = { ...this.spec, layers: [this.spec.layers[index]] };
    const names = new Map<LinearHandle, string>();
    const load = async (linear: LinearSpec) => {
      const { weight, rows, columns, firstRow = 0 } = linear;
      const values = replaced.get(weight);
      const handle = await this.backend.loadLinear(
        values
          ? {
              scheme: "f32",
              rows,
              columns,
              readRows: async (start, end) =>
                values.subarray((firstRow + start) * columns, (firstRow + end) * columns),
            }
          : await linearWeights(linear, this.#checkpoint, undefined, "f32"),
      );
      names.set(handle, weight);
      return handle;
    };
    const { linears, norms } = await loadLayers(spec, this.#checkpoint, this.backend, load);
    const [any] = linears.values();
    const weights = {
      embedding: any.handle,
      head: any.handle,
      linears,
      norms,
      fused: new Map(),
      byteLength: 0,
    };
    return { spec, weights, names };
  }

  free({ weights }: LoadedLayer): void {
    for (const { handle, bias } of weights.linears.values()) {
      this.backend.freeLinear(handle);
      if (bias) this.backend.free(bias);
    }
    for (const norm of weights.norms.values()) this.backend.free(norm);
  }

  /**
   * Sums x^T x of every distinct input of the layer's linear weights, once more for each tensor with token weights of
   * its own, and blended for compensation where it is given.
   */
  async observe(layer: LoadedLayer, hidden: Float32Array, options: ObserveOptions): Promise<InputGram[]> {
    const { advance, signal } = options;
    const watched: WatchedInput[] = [];
    const splice = (operations: Operation[]): Operation[] => {
      let linears = 0;
      const spliced = operations.flatMap((operation): Operation[] => {
        if (operation.op !== "linear") return [operation];
        const index = linears++;
        watched[index] ??= this.#watch(layer, operation.weights, LAYER_KINDS[index], options);
        return [...gramsOf(watched[index], operation.input, operation.rows), operation];
      });
      // Nobody reads what comes after the last input.
      return advance ? spliced : spliced.slice(0, spliced.findLastIndex(({ op }) => op === "gram") + 1);
    };
    const enter = (row: number, rows: number) => {
      for (const { tokenWeights } of watched.flatMap(({ sums }) => sums)) {
        if (tokenWeights)
          this.backend.upload(tokenWeights.slot, tokenWeights.values.subarray(row, row + rows));
      }
    };
    await this.run(layer, hidden, { change: splice, enter, keep: advance, signal });
    const results: InputGram[] = [];
    for (const input of watched) results.push(...(await this.#gramsFound(input, options)));
    return results;
  }

  #watch(
    { names }: LoadedLayer,
    handles: readonly LinearHandle[],
    kind: (typeof LAYER_KINDS)[number],
    { compensation, tokenWeights }: ObserveOptions,
  ): WatchedInput {
    const { columns } = handles[0];
    const weights = [...new Set(handles.map((handle) => names.get(handle)!))];
    // Tensors of the same token weights share their sums.
    const groups = groupBy(weights, (name) => tokenWeights?.get(name));
    const square = () => this.backend.allocate(columns * columns * 4);
    const sumsOf = (weights: readonly string[], values: Float32Array | undefined): WatchedSums => ({
      weights,
      sums: square(),
      left: compensation && square(),
      tokenWeights: values && { values, slot: this.backend.reserve(this.#buffers.rows * 4) },
    });
    return {
      columns,
      sums: Array.from(groups, ([values, names]) => sumsOf(names, values)),
      suppressed: compensation && {
        out: this.backend.reserve(this.#buffers.rows * columns * 4),
        channels: channelsOf(columns, compensation.channels[kind]),
      },
    };
  }

  /** Reads and frees the sums of an input. */
  async #gramsFound(
    { columns, sums, suppressed }: WatchedInput,
    { compensation }: ObserveOptions,
  ): Promise<InputGram[]> {
    const backend = this.backend;
    const grams: InputGram[] = [];
    for (const { weights, sums: slot, left, tokenWeights } of sums) {
      const values = await backend.readFloats(slot, columns * columns);
      if (left) {
        const { blend } = compensation!;
        const rest = await backend.readFloats(left, columns * columns);
        for (let i = 0; i < values.length; i++) values[i] = blend * values[i] + (1 - blend) * rest[i];
      }
      for (const each of [slot, left, tokenWeights?.slot]) if (each) backend.free(each);
      grams.push({ weights, columns, sums: values });
    }
    if (suppressed) backend.free(suppressed.out);
    return grams;
  }

  /** Replaces the hidden states that enter a layer by those that leave it. */
  async advance(layer: LoadedLayer, hidden: Float32Array, signal?: AbortSignal): Promise<void> {
    await this.run(layer, hidden, { keep: true, signal });
  }

  /** Most tokens of a step. */
  get stepRows(): number {
    return this.#buffers.rows;
  }

  dispose(): void {
    freeBuffers(this.#buffers, this.backend);
  }

  /** Runs all tokens through a layer, its operations changed. */
  async run(
    layer: LoadedLayer,
    hidden: Float32Array,
    { change = (operations) => operations, enter, after, keep, signal }: RunOptions,
  ): Promise<void> {
    const { spec, weights } = layer;
    const backend = this.backend;
    const buffers = this.#buffers;
    const cache = new KeyValueCache(spec, backend, 1, this.#capacity);
    const programs = new Map<number, Program>();
    const embeds = spec.layers.length === 0;
    const breathe = breather();
    const record = (rows: number) => {
      const plan = { spec, weights, cache, buffers };
      const [embed, ...layers] = forward(plan, { activations: "float" }, rows, "none", undefined);
      const { delta } = buffers;
      const add = { op: "add", input: buffers.hidden, add: delta, rows, size: spec.hiddenSize } as const;
      return backend.record(change(embeds ? [embed] : [...layers, add]));
    };
    try {
      let row = 0;
      for (const ids of this.#sequences) {
        for (let at = 0; at < ids.length; at += buffers.rows) {
          signal?.throwIfAborted();
          const part = ids.slice(at, at + buffers.rows);
          const rows = part.length;
          const positions = part.map((_, i) => at + i);
          uploadStep(this.spec, backend, buffers, { ids: part, positions, length: ids.length });
          const states = hidden.subarray(row * spec.hiddenSize, (row + rows) * spec.hiddenSize);
          if (!embeds) backend.upload(buffers.hidden, states);
          const program = programs.get(rows) ?? record(rows);
          programs.set(rows, program);
          enter?.(row, rows);
          await backend.run(program);
          await after?.(rows);
          if (keep) states.set(await backend.readFloats(buffers.hidden, states.length));
          row += rows;
        }
        await breathe();
      }
    } finally {
      for (const program of programs.values()) program.free();
      cache.free();
    }
  }
}
