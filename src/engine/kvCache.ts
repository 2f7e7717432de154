import type { Backend } from "../backends/backend.ts";
import type { KeyValueSlots, KeyValueType } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import { keyValueHeadBytes } from "../ops/attention/keyValue.ts";

/** Keys and values of every layer for several sequences. Entries are overwritten by position: rolling back is forgetting. */
export class KeyValueCache {
  readonly layers: readonly KeyValueSlots[];
  /** How entries are held. */
  readonly type: KeyValueType;
  /** Positions per sequence. */
  readonly capacity: number;
  readonly sequences: number;
  readonly #backend: Backend;

  constructor(
    spec: DecoderSpec,
    backend: Backend,
    sequences: number,
    capacity: number,
    type: KeyValueType = "f32",
  ) {
    this.#backend = backend;
    this.type = type;
    this.capacity = capacity;
    this.sequences = sequences;
    this.layers = spec.layers.map(({ attention: { kvHeads, headSize } }) => {
      const byteLength = sequences * capacity * kvHeads * keyValueHeadBytes(type, headSize);
      // Reserved, not filled: a long context costs memory only as far as it is used.
      return { type, keys: backend.reserve(byteLength), values: backend.reserve(byteLength), capacity };
    });
  }

  /** Bytes of one position over all layers. */
  static bytesPerPosition(spec: DecoderSpec, type: KeyValueType): number {
    return spec.layers.reduce((sum, { attention: a }) => {
      return sum + 2 * a.kvHeads * keyValueHeadBytes(type, a.headSize);
    }, 0);
  }

  free(): void {
    const slots: Slot[] = this.layers.flatMap(({ keys, values }) => [keys, values]);
    for (const slot of slots) this.#backend.free(slot);
  }
}
