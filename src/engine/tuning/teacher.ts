import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { lastStreams } from "../gradient/decoder.ts";
import type { Sequences } from "../sequences.ts";

/** Streams kept, as bytes: what comes again then needs no run of the float model. */
const KEPT_BYTES = 2 ** 29;
/** Tokens run at once: a layer's weights are read once for all of them. */
const TOKENS_AT_ONCE = 16_384;

/** The float model: what its last norm reads, for one sequence after another. */
export class Teacher {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly #backend: Backend;
  readonly #sequences: Sequences;
  readonly #streams = new Map<number, Float32Array>();

  /** @param sequences all that will be asked for, by number. */
  constructor(spec: DecoderSpec, checkpoint: Checkpoint, backend: Backend, sequences: Sequences) {
    this.spec = spec;
    this.checkpoint = checkpoint;
    this.#backend = backend;
    this.#sequences = sequences;
  }

  /** Streams [tokens, hidden] of some sequences; `next` will be asked for after them. */
  async streams(
    wanted: readonly number[],
    next: readonly number[],
    signal?: AbortSignal,
  ): Promise<Float32Array[]> {
    if (!wanted.every((s) => this.#streams.has(s))) await this.#run(wanted, next, signal);
    return wanted.map((s) => this.#streams.get(s)!);
  }

  async #run(wanted: readonly number[], next: readonly number[], signal?: AbortSignal): Promise<void> {
    const { spec, checkpoint } = this;
    const most = Math.min(TOKENS_AT_ONCE, KEPT_BYTES / (8 * spec.hiddenSize));
    const missing = new Set(wanted.filter((s) => !this.#streams.has(s)));
    let tokens = [...missing].reduce((sum, s) => sum + this.#sequences[s].length, 0);
    for (const s of next) {
      if (this.#streams.has(s) || missing.has(s)) continue;
      tokens += this.#sequences[s].length;
      if (tokens > most) break;
      missing.add(s);
    }
    const numbers = [...missing];
    const sequences = numbers.map((s) => this.#sequences[s]);
    const found = await lastStreams({ spec, checkpoint, backend: this.#backend, sequences, signal });
    for (const [i, s] of numbers.entries()) this.#streams.set(s, found[i]);
    this.#forget(new Set([...wanted, ...missing]));
  }

  /** Drops the oldest streams above the limit, but for those that are needed now. */
  #forget(needed: ReadonlySet<number>): void {
    let bytes = [...this.#streams.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    for (const [s, { byteLength }] of this.#streams) {
      if (bytes <= KEPT_BYTES) return;
      if (needed.has(s)) continue;
      this.#streams.delete(s);
      bytes -= byteLength;
    }
  }
}
