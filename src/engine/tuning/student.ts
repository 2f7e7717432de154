import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import type { LinearSpec, NormSpec } from "../../models/decoder.ts";
import type { DecoderObserver } from "../gradient/decoder.ts";
import type { Parameters } from "./parameters.ts";

/** The quantized weights of a model. */
export interface QuantizedWeights {
  /** Tensor names. */
  readonly names: readonly string[];
  /** The float values [rows, columns] that codes and scales of a tensor stand for. Not to be changed. */
  readonly decode: (name: string) => Promise<Float32Array>;
}

/** The quantized model with its parameters as they are whenever a tensor is read, as float tensors. */
export function studentCheckpoint(
  original: Checkpoint,
  parameters: Parameters,
  { names, decode }: QuantizedWeights,
): Checkpoint {
  const tensors = new Map(original.tensors);
  for (const name of names) {
    tensors.set(name, tunedWeight(original.tensors.get(name)!, parameters, decode));
  }
  for (const name of parameters.names("norm")) {
    tensors.set(name, tunedNorm(original.tensors.get(name)!, parameters));
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

function tunedWeight(tensor: Tensor, parameters: Parameters, decode: QuantizedWeights["decode"]): Tensor {
  const { name, shape } = tensor;
  const columns = shape[1];
  return {
    ...tensor,
    readBytes: undefined,
    async readRows(start, end, target = new Float32Array((end - start) * columns)) {
      const values = await decode(name);
      for (let row = start; row < end; row++) {
        const factor = parameters.factor(name, row);
        const at = (row - start) * columns;
        for (let i = 0; i < columns; i++) target[at + i] = factor * values[row * columns + i];
      }
      return target;
    },
  };
}

/**
 * Sums the gradient of a loss by the parameters over the pass that it observes. Of a row with the scale s e^t it is the
 * sum over tokens of the gradient of the output, times the output less its bias.
 */
export class ParameterGradient implements DecoderObserver {
  readonly sum: Float64Array;
  readonly #original: Checkpoint;
  readonly #parameters: Parameters;
  readonly #biases = new Map<LinearSpec, Float32Array>();

  constructor(original: Checkpoint, parameters: Parameters) {
    this.#original = original;
    this.#parameters = parameters;
    this.sum = new Float64Array(parameters.values.length);
  }

  async output(linear: LinearSpec, _: number, output: Float32Array, dOut: Float32Array): Promise<void> {
    const block = this.#parameters.blocks.get(linear.weight);
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
    const { first, unit } = this.#parameters.blocks.get(weight)!;
    for (let i = 0; i < dWeight.length; i++) this.sum[first + i] += unit * dWeight[i];
  }

  async #bias(linear: LinearSpec): Promise<Float32Array> {
    const { bias, firstRow = 0, rows } = linear;
    const known = this.#biases.get(linear);
    if (known) return known;
    const values = bias
      ? await this.#original.tensors.get(bias)!.readRows(firstRow, firstRow + rows)
      : new Float32Array(rows);
    this.#biases.set(linear, values);
    return values;
  }
}
