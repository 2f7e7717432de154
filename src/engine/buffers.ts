import type { Backend } from "../backends/backend.ts";
import type { Slot } from "../backends/slot.ts";
import type { DecoderSpec } from "../models/decoder.ts";

/** Activations of one step, all float32 with one row per token, and the step's inputs. */
export interface StepBuffers {
  readonly rows: number;
  readonly ids: Slot;
  readonly positions: Slot;
  readonly sequences: Slot;
  /** By rope of the decoder: cosines and sines per row. */
  readonly ropes: readonly Slot[];
  /** The residual stream. */
  readonly hidden: Slot;
  /** Input of a sublayer. */
  readonly normed: Slot;
  /** Output of a sublayer. */
  readonly delta: Slot;
  readonly q: Slot;
  readonly k: Slot;
  readonly v: Slot;
  readonly attended: Slot;
  readonly gate: Slot;
  readonly up: Slot;
}

/** Reserves buffers for steps of up to `rows` tokens. */
export function reserveBuffers(spec: DecoderSpec, backend: Backend, rows: number): StepBuffers {
  const widest = (size: (layer: DecoderSpec["layers"][number]) => number) =>
    Math.max(...spec.layers.map(size));
  const row = (width: number) => backend.reserve(rows * width * 4);
  const queries = widest(({ attention: { heads, headSize } }) => heads * headSize);
  const keys = widest(({ attention: { kvHeads, headSize } }) => kvHeads * headSize);
  const intermediate = widest(({ mlp }) => mlp.gate.rows);
  return {
    rows,
    ids: row(1),
    positions: row(1),
    sequences: row(1),
    ropes: spec.ropes.map(({ rotated }) => row(rotated)),
    hidden: row(spec.hiddenSize),
    normed: row(spec.hiddenSize),
    delta: row(spec.hiddenSize),
    q: row(queries),
    k: row(keys),
    v: row(keys),
    attended: row(queries),
    gate: row(intermediate),
    up: row(intermediate),
  };
}
