import type { Backend } from "../backends/backend.ts";
import type { Operation } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import { freeBuffers, reserveBuffers, type StepBuffers, uploadStep } from "./buffers.ts";
import { forward } from "./forward.ts";
import { KeyValueCache } from "./kvCache.ts";
import type { LoadedWeights } from "./weights.ts";

/** A part of a decoder: what is before its layers, a layer by its index, or what is after them. */
export type Part = "embedding" | "head" | number;

/**
 * A decoder as its parts (embedding, layers, head), for work that goes over a whole sequence at once and stops
 * between them. Each part turns the residual stream in `buffers.hidden` into the next one's, complete.
 */
export class DecoderParts {
  readonly spec: DecoderSpec;
  /** Most tokens of a sequence. */
  readonly tokens: number;
  readonly buffers: StepBuffers;
  readonly #backend: Backend;
  readonly #caches: readonly KeyValueCache[];

  constructor(spec: DecoderSpec, backend: Backend, tokens: number) {
    this.spec = spec;
    this.tokens = tokens;
    this.#backend = backend;
    this.buffers = reserveBuffers(spec, backend, tokens);
    this.#caches = spec.layers.map((layer) => {
      return new KeyValueCache({ ...spec, layers: [layer] }, backend, 1, tokens);
    });
  }

  /** Brings in the tokens of the sequence at work, at most `tokens`. */
  start(ids: readonly number[]): void {
    const positions = ids.map((_, i) => i);
    uploadStep(this.spec, this.#backend, this.buffers, { ids, positions, length: ids.length });
  }

  embed(weights: LoadedWeights, rows: number): Operation[] {
    return this.#operations({ ...this.spec, layers: [] }, weights, rows, undefined, undefined);
  }

  layer(index: number, weights: LoadedWeights, rows: number): Operation[] {
    const spec = { ...this.spec, layers: [this.spec.layers[index]] };
    const [, ...operations] = this.#operations(spec, weights, rows, undefined, this.#caches[index]);
    const { hidden, delta } = this.buffers;
    return [...operations, { op: "add", input: hidden, add: delta, rows, size: spec.hiddenSize }];
  }

  /** Leaves the logits of the first `rows` tokens, [rows, vocabulary], in `logits`. */
  head(weights: LoadedWeights, rows: number, logits: Slot): Operation[] {
    const [, ...operations] = this.#operations(
      { ...this.spec, layers: [] },
      weights,
      rows,
      logits,
      undefined,
    );
    return operations;
  }

  dispose(): void {
    freeBuffers(this.buffers, this.#backend);
    for (const cache of this.#caches) cache.free();
  }

  #operations(
    spec: DecoderSpec,
    weights: LoadedWeights,
    rows: number,
    logits: Slot | undefined,
    cache: KeyValueCache | undefined,
  ): Operation[] {
    const plan = { spec, weights, cache: cache ?? this.#caches[0], buffers: this.buffers };
    return forward(plan, { activations: "float" }, rows, logits ? "all" : "none", logits);
  }
}
