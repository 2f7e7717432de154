import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec, LinearSpec, NormSpec } from "../../models/decoder.ts";
import type { DecoderObserver } from "../gradient/decoder.ts";
import type { ParameterBlock, Parameters } from "./parameters.ts";

/** The float values [rows, columns] that codes and scales of a weight tensor stand for. Not to be changed. */
export type DecodedWeights = (name: string) => Promise<Float32Array>;

/** The quantized model with its parameters as they are whenever a tensor is read, as float tensors. */
export function studentCheckpoint(
  original: Checkpoint,
  parameters: Parameters,
  decoded: DecodedWeights,
): Checkpoint {
  const tensors = new Map(original.tensors);
  for (const [name, block] of parameters.blocks) {
    const tensor = original.tensors.get(name)!;
    tensors.set(
      name,
      block.kind === "norm" ? tunedNorm(tensor, parameters) : tunedWeight(tensor, block, parameters, decoded),
    );
  }
  return { ...original, tensors };
}

function tunedNorm(tensor: Tensor, parameters: Parameters): Tensor {
  return {
    ...tensor,
    readBytes: undefined,
    readRows: async (start, end, target) =>
      parameters.applyNorm(tensor.name, await tensor.readRows(start, end, target), start),
  };
}

function tunedWeight(
  tensor: Tensor,
  block: ParameterBlock,
  parameters: Parameters,
  decoded: DecodedWeights,
): Tensor {
  const { name, shape } = tensor;
  const columns = shape[1];
  return {
    ...tensor,
    readBytes: undefined,
    async readRows(start, end, target = new Float32Array((end - start) * columns)) {
      const values = await decoded(name);
      for (let row = start; row < end; row++) {
        const factor = parameters.factor(block, row);
        const at = (row - start) * columns;
        for (let i = 0; i < columns; i++) target[at + i] = factor * values[row * columns + i];
      }
      return target;
    },
  };
}

export interface GradientSource {
  readonly spec: DecoderSpec;
  readonly original: Checkpoint;
  readonly decoded: DecodedWeights;
  readonly parameters: Parameters;
  readonly sequences: readonly (readonly number[])[];
}

/**
 * Sums the gradient of a loss by the parameters over the pass that it observes. Of a row with the scale s e^t it is the
 * sum over tokens of the gradient of the output, times the output less its bias.
 */
export class ParameterGradient implements DecoderObserver {
  readonly sum: Float64Array;
  readonly #source: GradientSource;
  readonly #biases = new Map<LinearSpec, Float32Array>();

  constructor(source: GradientSource) {
    this.#source = source;
    this.sum = new Float64Array(source.parameters.values.length);
  }

  async output(linear: LinearSpec, _: number, output: Float32Array, dOut: Float32Array): Promise<void> {
    const block = this.#source.parameters.blocks.get(linear.weight);
    if (!block) return;
    const { rows, firstRow = 0 } = linear;
    const first = block.first + firstRow;
    const bias = await this.#bias(linear);
    for (let at = 0; at < dOut.length; at += rows) {
      for (let row = 0; row < rows; row++) {
        this.sum[first + row] += dOut[at + row] * (output[at + row] - bias[row]);
      }
    }
  }

  norm({ weight }: NormSpec, _: number, dWeight: Float32Array): void {
    const { first, unit } = this.#source.parameters.blocks.get(weight)!;
    for (let i = 0; i < dWeight.length; i++) this.sum[first + i] += unit * dWeight[i];
  }

  async embed(sequence: number, dRows: Float32Array): Promise<void> {
    const { spec, parameters, decoded, sequences } = this.#source;
    const { weight, columns } = spec.embedding;
    const block = parameters.blocks.get(weight);
    if (!block) return;
    const values = await decoded(weight);
    for (const [t, id] of sequences[sequence].entries()) {
      let dot = 0;
      for (let i = 0; i < columns; i++) dot += dRows[t * columns + i] * values[id * columns + i];
      this.sum[block.first + id] += dot * parameters.factor(block, id);
    }
  }

  async #bias(linear: LinearSpec): Promise<Float32Array> {
    const { bias, firstRow = 0, rows } = linear;
    const known = this.#biases.get(linear);
    if (known) return known;
    const values = bias
      ? await this.#source.original.tensors.get(bias)!.readRows(firstRow, firstRow + rows)
      : new Float32Array(rows);
    this.#biases.set(linear, values);
    return values;
  }
}
