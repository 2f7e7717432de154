import { groupBy } from "../../groupBy.ts";
import type { DecoderSpec, LinearSpec } from "../../models/decoder.ts";
import type { Part } from "../parts.ts";
import { linearSpecs } from "../weights.ts";

/** A weight tensor that a plan chooses a quantizer for; one tensor may hold several linear layers (Phi-3). */
export interface WeightTensor {
  /** Hugging Face name. */
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  /** Its linear layers in the decoder's own objects. */
  readonly linears: readonly LinearSpec[];
  /** What it first touches: the embedding, a layer by its index, or the head. */
  readonly part: Part;
}

/** Every weight tensor of a decoder in the order of use, a tied embedding once. */
export function weightTensors(spec: DecoderSpec): WeightTensor[] {
  const layers = spec.layers.flatMap((layer, index) => {
    const byName = groupBy(linearSpecs({ ...spec, layers: [layer] }), ({ weight }) => weight);
    return Array.from(byName.values(), (linears) => tensorOf(linears, index));
  });
  const head = spec.head === spec.embedding ? [] : [tensorOf([spec.head], "head")];
  return [tensorOf([spec.embedding], "embedding"), ...layers, ...head];
}

function tensorOf(linears: readonly LinearSpec[], part: WeightTensor["part"]): WeightTensor {
  const rows = Math.max(...linears.map(({ firstRow = 0, rows }) => firstRow + rows));
  return { name: linears[0].weight, rows, columns: linears[0].columns, linears, part };
}
