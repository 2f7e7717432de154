import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { linearSpecs, normSpecs } from "../weights.ts";

/** The parameters of one tensor. */
export interface ParameterBlock {
  readonly kind: "scales" | "norm";
  /** Place of the first one among all. */
  readonly first: number;
  readonly count: number;
  /** What a parameter of 1 adds to a norm's weight: the weights' root mean square. */
  readonly unit: number;
}

/**
 * What is tuned: for each row of a layer's quantized weight the logarithm of a factor of its scale, for each norm weight
 * what is added to it in units of their root mean square. All are 0 at first, so that one rate suits all.
 *
 * Embedding and head are left out: a row of theirs belongs to one token, which a text to tune on shows a few times or
 * never, and Adam answers a rare gradient with steps as large as those of a steady one.
 */
export class Parameters {
  /** By tensor name. */
  readonly blocks: ReadonlyMap<string, ParameterBlock>;
  readonly values: Float64Array;

  private constructor(blocks: ReadonlyMap<string, ParameterBlock>) {
    this.blocks = blocks;
    this.values = new Float64Array([...blocks.values()].reduce((sum, { count }) => sum + count, 0));
  }

  /** @param quantized names of weight tensors. */
  static async create(
    spec: DecoderSpec,
    { tensors }: Pick<Checkpoint, "tensors">,
    quantized: readonly string[],
  ): Promise<Parameters> {
    const blocks = new Map<string, ParameterBlock>();
    let first = 0;
    const add = (name: string, block: Omit<ParameterBlock, "first">) => {
      blocks.set(name, { ...block, first });
      first += block.count;
    };
    const weights = new Set(linearSpecs(spec).map(({ weight }) => weight));
    for (const name of quantized) {
      if (weights.has(name)) add(name, { kind: "scales", count: tensors.get(name)!.shape[0], unit: 1 });
    }
    for (const { weight, size } of normSpecs(spec)) {
      if (blocks.has(weight)) continue;
      const values = await tensors.get(weight)!.readRows(0, size);
      const squares = values.reduce((sum, value) => sum + (value + spec.normOffset) ** 2, 0);
      add(weight, { kind: "norm", count: size, unit: Math.sqrt(squares / size) });
    }
    return new Parameters(blocks);
  }

  /** Names of the tensors of a kind. */
  names(kind: ParameterBlock["kind"]): string[] {
    return [...this.blocks].flatMap(([name, block]) => (block.kind === kind ? [name] : []));
  }

  /** What the scale of a weight's row is multiplied with. */
  factor(name: string, row: number): number {
    const block = this.blocks.get(name);
    return block ? Math.exp(this.values[block.first + row]) : 1;
  }

  /** Scales of a weight as tuned, from those it was quantized with. */
  scales(name: string, quantized: Float32Array): Float32Array {
    return quantized.map((scale, row) => scale * this.factor(name, row));
  }

  /** Tunes norm weights from number `start` on, in place. */
  applyNorm(name: string, values: Float32Array, start = 0): Float32Array {
    const { first, unit } = this.blocks.get(name)!;
    for (let i = 0; i < values.length; i++) values[i] += unit * this.values[first + start + i];
    return values;
  }
}
