/**
 * What of a model there is to plan.
 *
 * @module
 */
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { floatDecoder, fusionGroups } from "../quantize/plan.ts";
import { linearSpecs } from "../weights.ts";

/** A weight tensor that takes a scheme of its own. */
export interface PlannableLayer {
  /** Name of the tensor. */
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  /** `linear`, or an end of the model: `embedding` (the head too where they are tied) or `head`. */
  readonly role: "linear" | "embedding" | "head";
  /** The first of the layers that share its input, where there are several. */
  readonly group?: string;
}

export interface PlannableModel {
  readonly decoder: DecoderSpec;
  /** In the order of the blocks, then the ends. */
  readonly layers: readonly PlannableLayer[];
}

/** The layers of a float checkpoint. Throws a UsageError when it is quantized already. */
export function plannableModel(checkpoint: Checkpoint): PlannableModel {
  const decoder = floatDecoder(checkpoint);
  const groupOf = new Map(
    fusionGroups(decoder).flatMap((group) => (group.length > 1 ? group.map((name) => [name, group[0]]) : [])),
  );
  const layers = new Map<string, PlannableLayer>();
  const add = (name: string, role: PlannableLayer["role"]) => {
    const tensor = checkpoint.tensors.get(name);
    if (!tensor || layers.has(name)) return;
    const [rows, columns] = tensor.shape;
    layers.set(name, { name, rows, columns, role, group: groupOf.get(name) });
  };
  for (const { weight } of linearSpecs(decoder)) add(weight, "linear");
  add(decoder.embedding.weight, "embedding");
  add(decoder.head.weight, "head");
  return { decoder, layers: [...layers.values()] };
}

/** `model.layers.3.mlp.up_proj.weight` is `up` in block 3; ends have no block. */
export function placeOfLayer(name: string): { readonly kind: string; readonly block: number | undefined } {
  const block = /\.(\d+)\./.exec(name)?.[1];
  const leaf = name
    .replace(/\.weight$/, "")
    .split(".")
    .at(-1)!;
  const kind = leaf
    .replace(/_proj$/, "")
    .replace(/^embed_tokens$/, "embedding")
    .replace(/^lm_head$/, "head");
  return { kind, block: block === undefined ? undefined : Number(block) };
}
