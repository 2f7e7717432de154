import type { Balance, Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { rowLayout, rowTarget } from "../../checkpoint/shape.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import type { ScalableInput } from "./inputs.ts";

/** What the values of a tensor are multiplied by. */
interface Factors {
  readonly rows: Float64Array;
  readonly columns: Float64Array;
  /** Added to the values where they are used, and so while they are multiplied. */
  offset: number;
}

/**
 * A float model that computes the same with its channels scaled: W diag(s) for the weights of an input, 1 / s in the norm
 * or the rows of the layer that makes it. Tensors are scaled whenever their rows are read.
 *
 * @param scales of each input's source, [sourceSize]
 */
export function balancedCheckpoint(
  checkpoint: Checkpoint,
  spec: DecoderSpec,
  inputs: readonly ScalableInput[],
  scales: readonly Float32Array[],
  balance: Balance,
): Checkpoint {
  const tensors = new Map(checkpoint.tensors);
  for (const [tensor, factors] of factorsOf(checkpoint, spec, inputs, scales)) {
    tensors.set(tensor.name, scaled(tensor, factors));
  }
  return { ...checkpoint, tensors, balance };
}

function factorsOf(
  { tensors }: Checkpoint,
  { normOffset }: DecoderSpec,
  inputs: readonly ScalableInput[],
  scales: readonly Float32Array[],
): Map<Tensor, Factors> {
  const all = new Map<Tensor, Factors>();
  const factorsFor = (name: string): Factors => {
    const tensor = tensors.get(name)!;
    const { rows, rowSize } = rowLayout(tensor.shape);
    const ones = (size: number) => new Float64Array(size).fill(1);
    const factors = all.get(tensor) ?? { rows: ones(rows), columns: ones(rowSize), offset: 0 };
    all.set(tensor, factors);
    return factors;
  };
  const divide = (name: string, firstRow: number, divisors: Float32Array) => {
    const { rows } = factorsFor(name);
    divisors.forEach((divisor, i) => {
      rows[firstRow + i] /= divisor;
    });
  };
  for (const [index, { readers, source, sourceChannel }] of inputs.entries()) {
    for (const weight of new Set(readers.map(({ weight }) => weight))) {
      const { columns } = factorsFor(weight);
      for (let i = 0; i < columns.length; i++) columns[i] *= scales[index][sourceChannel(i)];
    }
    if ("norm" in source) {
      divide(source.norm.weight, 0, scales[index]);
      factorsFor(source.norm.weight).offset = normOffset;
    } else {
      const { weight, bias, firstRow = 0 } = source.linear;
      for (const name of bias ? [weight, bias] : [weight]) divide(name, firstRow, scales[index]);
    }
  }
  return all;
}

function scaled(tensor: Tensor, { rows, columns, offset }: Factors): Tensor {
  const { name, shape, encoding, byteLength } = tensor;
  return {
    ...{ name, shape, encoding, byteLength },
    async readRows(start, end, target) {
      const { rowSize, out } = rowTarget(name, shape, start, end, target);
      await tensor.readRows(start, end, out);
      for (let row = start, at = 0; row < end; row++, at += rowSize) {
        const factor = rows[row];
        for (let i = 0; i < rowSize; i++) {
          out[at + i] = (out[at + i] + offset) * factor * columns[i] - offset;
        }
      }
      return out;
    },
  };
}
