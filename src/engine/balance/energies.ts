/**
 * How large the channels are that balancing weighs against each other.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { channelsOf } from "../../compensation/settings.ts";
import type { DecoderSpec, LinearSpec } from "../../models/decoder.ts";
import { InputCopies } from "../calibrate/inputCopies.ts";
import type { CompensatedCalibration } from "../calibrate/options.ts";
import { type StepWatcher, sampleText } from "../ownText.ts";
import type { LoadedWeights } from "../weights.ts";
import type { ScalableInput } from "./inputs.ts";

/** Weights read at once. */
const READ_VALUES = 2 ** 20;

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

/** Mean square of each channel of the inputs, in their order, [columns]: of what the model reads while it makes up text. */
export async function inputEnergies(
  inputs: readonly ScalableInput[],
  run: EnergyRun,
): Promise<Float64Array[]> {
  const { compensation } = run;
  const sums = new Map(inputs.map((input) => [input.readers[0], new EnergySums(input.columns)]));
  const kinds = new Map(inputs.map(({ readers, kind }) => [readers[0], kind]));
  const watch = (weights: LoadedWeights, rows: number): StepWatcher => {
    const linears = new Map(Array.from(weights.linears, ([linear, { handle }]) => [handle, linear]));
    const taken = (handle: LinearHandle) => {
      const kind = kinds.get(linears.get(handle)!);
      return kind === undefined ? 0 : channelsOf(handle.columns, compensation!.channels[kind]);
    };
    const copies = new InputCopies(run.backend, rows, compensation && taken);
    return {
      change: (operations) => copies.change(operations),
      after: (rows) =>
        copies.show(rows, ({ weights: [first], values, left }) =>
          sums.get(linears.get(first)!)?.add(values, left),
        ),
      free: () => copies.free(),
    };
  };
  await sampleText({ ...run, seed: 0, watch });
  return inputs.map(({ readers: [first] }) => sums.get(first)!.means(compensation?.blend));
}

/** Mean square of each column over the rows of all weights of an input, [columns]. */
export async function weightEnergies(
  readers: readonly LinearSpec[],
  { tensors }: Pick<Checkpoint, "tensors">,
): Promise<Float64Array> {
  const { columns } = readers[0];
  const sums = new EnergySums(columns);
  const step = Math.max(1, Math.floor(READ_VALUES / columns));
  for (const { weight, rows, firstRow = 0 } of readers) {
    const tensor = tensors.get(weight)!;
    for (let row = 0; row < rows; row += step) {
      sums.add(await tensor.readRows(firstRow + row, firstRow + Math.min(rows, row + step)));
    }
  }
  return sums.means();
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
