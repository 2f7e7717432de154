/**
 * How large the channels are that balancing weighs against each other.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { channelsOf } from "../../compensation/settings.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { InputCopies } from "../calibrate/inputCopies.ts";
import type { CompensatedCalibration } from "../calibrate/options.ts";
import { type StepWatcher, sampleText } from "../ownText.ts";
import type { LoadedWeights } from "../weights.ts";
import type { ScalableInput } from "./inputs.ts";

export interface EnergyRun {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  /** Sequences that the model makes up, each after the token `first`. */
  readonly sequences: number;
  readonly sequenceLength: number;
  readonly first: number;
  /** Blends in what compensation will leave. */
  readonly compensation?: CompensatedCalibration;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Mean squares of an input's channels and of the weights that multiply each, [columns]. */
export interface Energies {
  readonly inputs: Float64Array;
  readonly weights: Float64Array;
}

/** Of the inputs in their order: of what the model reads while it makes up text, and of its weights as they are loaded. */
export async function channelEnergies(inputs: readonly ScalableInput[], run: EnergyRun): Promise<Energies[]> {
  const { checkpoint, compensation } = run;
  const found = inputs.map(({ kind, columns, readers }) => {
    return { kind, readers, inputs: new EnergySums(columns), weights: new EnergySums(columns) };
  });
  const byReader = new Map(found.map((each) => [each.readers[0], each]));
  const watch = (weights: LoadedWeights, rows: number): StepWatcher => {
    const linears = new Map(Array.from(weights.linears, ([linear, { handle }]) => [handle, linear]));
    const multipliedBy = (handle: LinearHandle) => byReader.get(linears.get(handle)!);
    const taken = (handle: LinearHandle) => {
      const kind = multipliedBy(handle)?.kind;
      return kind === undefined ? 0 : channelsOf(handle.columns, compensation!.channels[kind]);
    };
    const copies = new InputCopies(run.backend, rows, compensation && taken);
    return {
      change: (operations) => copies.change(operations),
      after: (rows) =>
        copies.show(rows, ({ weights: [first], values, left }) =>
          multipliedBy(first)?.inputs.add(values, left),
        ),
      free: () => copies.free(),
    };
  };
  const tensors = new Map(checkpoint.tensors);
  for (const { readers, weights } of found) {
    for (const { weight } of readers) {
      const tensor = checkpoint.tensors.get(weight);
      if (tensor)
        tensors.set(
          weight,
          watched(tensor, (rows) => weights.add(rows)),
        );
    }
  }
  await sampleText({ ...run, checkpoint: { ...checkpoint, tensors }, seed: 0, watch });
  return found.map(({ inputs, weights }) => {
    return { inputs: inputs.means(compensation?.blend), weights: weights.means() };
  });
}

/** A tensor whose rows are seen when they are read. */
function watched(tensor: Tensor, see: (rows: Float32Array) => void): Tensor {
  return {
    ...tensor,
    async readRows(start, end, target) {
      const rows = await tensor.readRows(start, end, target);
      see(rows);
      return rows;
    },
  };
}

/** Sums of squares of columns. */
class EnergySums {
  readonly #all: Float64Array;
  readonly #left: Float64Array;
  #rows = 0;

  constructor(columns: number) {
    this.#all = new Float64Array(columns);
    this.#left = new Float64Array(columns);
  }

  /** @param values [rows, columns]; `left` what compensation leaves of them */
  add(values: Float32Array, left?: Float32Array): void {
    addSquares(values, this.#all);
    if (left) addSquares(left, this.#left);
    this.#rows += values.length / this.#all.length;
  }

  /** Mean squares: `blend` of all, and for the rest of what compensation leaves. */
  means(blend = 1): Float64Array {
    const rows = Math.max(1, this.#rows);
    return this.#all.map((sum, i) => (blend * sum + (1 - blend) * this.#left[i]) / rows);
  }
}

function addSquares(values: Float32Array, sums: Float64Array): void {
  const columns = sums.length;
  for (let at = 0; at < values.length; at += columns) {
    for (let i = 0; i < columns; i++) sums[i] += values[at + i] * values[at + i];
  }
}
