import type { Backend } from "../backends/backend.ts";
import type { Slot } from "../backends/slot.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import { ropeRow } from "../models/rope.ts";

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
  /** Queries, keys and values; the step says where each lies. */
  readonly qkv: Slot;
  readonly attended: Slot;
  readonly gateUp: Slot;
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
    qkv: row(queries + 2 * keys),
    attended: row(queries),
    gateUp: row(2 * intermediate),
  };
}

/** The tokens of one step. Tokens of one sequence come in the order of their positions. */
export interface StepInput {
  readonly ids: ArrayLike<number>;
  readonly positions: ArrayLike<number>;
  /** Which sequence each token belongs to; default 0 for all. */
  readonly sequences?: ArrayLike<number>;
  /**
   * Length that sequences reach, where ropes depend on it: one for all tokens, by default up to this step's last
   * position, or each token's own.
   */
  readonly length?: number | ArrayLike<number>;
}

/** Brings the tokens of a step into the buffers, and the angles of their positions. */
export function uploadStep(
  spec: DecoderSpec,
  backend: Backend,
  buffers: StepBuffers,
  { ids, positions, sequences, length = 0 }: StepInput,
): void {
  const rows = ids.length;
  backend.upload(buffers.ids, new Int32Array(ids));
  backend.upload(buffers.positions, new Int32Array(positions));
  backend.upload(buffers.sequences, sequences ? new Int32Array(sequences) : new Int32Array(rows));
  let longest = typeof length === "number" ? length : 0;
  for (let i = 0; i < rows; i++) longest = Math.max(longest, positions[i] + 1);
  spec.ropes.forEach((rope, r) => {
    const shared = typeof length === "number" ? rope.inverseFrequencies(longest) : undefined;
    const table = new Float32Array(rows * rope.rotated);
    for (let i = 0; i < rows; i++) {
      const frequencies = shared ?? rope.inverseFrequencies((length as ArrayLike<number>)[i]);
      ropeRow(rope, frequencies, positions[i], table.subarray(i * rope.rotated, (i + 1) * rope.rotated));
    }
    backend.upload(buffers.ropes[r], table);
  });
}

export function freeBuffers({ rows: _, ropes, ...slots }: StepBuffers, backend: Backend): void {
  for (const slot of [...Object.values(slots), ...ropes]) backend.free(slot);
}
