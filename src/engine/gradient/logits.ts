import type { Backend } from "../../backends/backend.ts";
import type { Slot } from "../../backends/slot.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { DecoderParts } from "../parts.ts";
import { logitRows } from "./decoder.ts";
import { type LoadedPart, loadPart } from "./loadPart.ts";

/** Last norm and head of a model: logits of residual streams, a few tokens at a time. */
export class LogitsOf {
  readonly #spec: DecoderSpec;
  readonly #backend: Backend;
  readonly #parts: DecoderParts;
  readonly #loaded: LoadedPart;
  readonly #logits: Slot;

  private constructor(spec: DecoderSpec, backend: Backend, loaded: LoadedPart, rows: number) {
    this.#spec = spec;
    this.#backend = backend;
    this.#loaded = loaded;
    this.#parts = new DecoderParts(spec, backend, rows);
    this.#logits = backend.reserve(rows * spec.vocabularySize * 4);
  }

  /** @param tokens of the longest stream. */
  static async load(
    spec: DecoderSpec,
    checkpoint: Checkpoint,
    backend: Backend,
    tokens: number,
  ): Promise<LogitsOf> {
    const head = { ...spec, layers: spec.layers.slice(0, 1) };
    const loaded = await loadPart(spec, "head", checkpoint, backend, { back: false });
    return new LogitsOf(head, backend, loaded, Math.min(tokens, logitRows(spec.vocabularySize)));
  }

  /** Most tokens at once. */
  get rows(): number {
    return this.#parts.tokens;
  }

  /** Logits [rows, vocabulary] of rows of a stream [tokens, hidden]. */
  async of(stream: Float32Array, first: number, rows: number): Promise<Float32Array> {
    const { hiddenSize, vocabularySize } = this.#spec;
    const backend = this.#backend;
    backend.upload(
      this.#parts.buffers.hidden,
      stream.subarray(first * hiddenSize, (first + rows) * hiddenSize),
    );
    const program = backend.record(this.#parts.head(this.#loaded.weights, rows, this.#logits));
    await backend.run(program);
    program.free();
    return backend.readFloats(this.#logits, rows * vocabularySize);
  }

  free(): void {
    this.#backend.free(this.#logits);
    this.#parts.dispose();
    this.#loaded.free();
  }
}
