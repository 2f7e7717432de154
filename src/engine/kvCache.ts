import type { Backend } from "../backends/backend.ts";
import type { KeyValueSlots } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { DecoderSpec } from "../models/decoder.ts";

/** Keys and values of every layer for several sequences. Entries are overwritten by position: rolling back is forgetting. */
export class KeyValueCache {
  readonly layers: readonly KeyValueSlots[];
  /** Positions per sequence. */
  readonly capacity: number;
  readonly sequences: number;
  readonly #backend: Backend;

  constructor(spec: DecoderSpec, backend: Backend, sequences: number, capacity: number) {
    this.#backend = backend;
    this.capacity = capacity;
    this.sequences = sequences;
    this.layers = spec.layers.map(({ attention: { kvHeads, headSize } }) => {
      const byteLength = sequences * capacity * kvHeads * headSize * 4;
      // Reserved, not filled: a long context costs memory only as far as it is used.
      return { keys: backend.reserve(byteLength), values: backend.reserve(byteLength), capacity };
    });
  }

  /** Bytes of one position over all layers. */
  static bytesPerPosition(spec: DecoderSpec): number {
    return spec.layers.reduce((sum, { attention: a }) => sum + 2 * 4 * a.kvHeads * a.headSize, 0);
  }

  free(): void {
    const slots: Slot[] = this.layers.flatMap(({ keys, values }) => [keys, values]);
    for (const slot of slots) this.#backend.free(slot);
  }
}
