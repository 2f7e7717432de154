/**
 * What the file of a quantized checkpoint holds.
 *
 * @module
 */
import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { quantizedNames } from "../../checkpoint/quantization.ts";
import type { TensorEntry } from "../../checkpoint/safetensors/header.ts";
import { filesByteLength } from "../../checkpoint/safetensors/shards.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import type { TensorPlan } from "./plan.ts";

/** The tensors that a quantized copy keeps: a head that the config ties to the embedding is dead weight. */
export function keptTensors({ tensors, config }: Pick<Checkpoint, "tensors" | "config">): Tensor[] {
  const tied = config.tie_word_embeddings === true;
  return [...tensors.values()].filter(({ name }) => name !== "lm_head.weight" || !tied);
}

/** What stands in the file for a tensor: a fused weight stands where its first part was. */
export function storedEntries(tensor: Tensor, plan: TensorPlan): TensorEntry[] {
  const planned = plan.get(tensor.name);
  if (!planned) return [{ name: tensor.name, dtype: "F32", shape: tensor.shape }];
  const { name, stored } = planned.place;
  if (stored.parts && stored.parts[0].name !== tensor.name) return [];
  const { codes, scales } = quantizedNames(name);
  const [rows, columns] = stored.shape;
  const codeBytes = quantizerFor(parseScheme(stored.scheme)).codesByteLength(rows, columns);
  return [
    { name: codes, dtype: "U8", shape: [codeBytes] },
    { name: scales, dtype: "F32", shape: [rows] },
  ];
}

/** Bytes of the safetensors files that quantizing with a plan writes, headers included. */
export function plannedBytes(checkpoint: Checkpoint, plan: TensorPlan): number {
  return filesByteLength(keptTensors(checkpoint).flatMap((tensor) => storedEntries(tensor, plan)));
}
