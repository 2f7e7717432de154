import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { quantizationOf, type StoredScheme } from "../../checkpoint/quantization.ts";
import { UsageError } from "../../errors.ts";
import { decoderFor } from "../../models/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { linearSpecs, tieMissingHead } from "../weights.ts";

export interface QuantizeOptions {
  /** Of the linear layers, e.g. `nuq-4`. */
  readonly scheme: string;
  /** Of the embedding and the output head; a float scheme leaves them as they are. Default `uniform-8`. */
  readonly embeddingScheme?: string;
  /** Rotate the inputs of quantized layers. Default true. */
  readonly rotate?: boolean;
  /** Of the rotations. Default 0. */
  readonly seed?: number;
}

export const DEFAULT_EMBEDDING_SCHEME = "uniform-8";

/** Which tensors of a checkpoint will be stored how. Tensors it does not name stay as they are. */
export function planTensors(checkpoint: Checkpoint, options: QuantizeOptions): Map<string, StoredScheme> {
  if (quantizationOf(checkpoint)) {
    throw new UsageError(`${checkpoint.source}: is quantized already; start from the float model`);
  }
  const { source, config, tensors } = checkpoint;
  const decoder = tieMissingHead(decoderFor(source, config, tensors), checkpoint);
  const plan = new Map<string, StoredScheme>();
  const { rotate = true, seed = 0, embeddingScheme = DEFAULT_EMBEDDING_SCHEME } = options;
  const add = (weight: string, scheme: string) => {
    const tensor = checkpoint.tensors.get(weight);
    if (!tensor || parseScheme(scheme).family === "float") return;
    const [rows, columns] = tensor.shape;
    plan.set(weight, { scheme, shape: [rows, columns], rotation: rotate ? seed : null });
  };
  for (const { weight } of linearSpecs(decoder)) add(weight, options.scheme);
  for (const { weight } of [decoder.embedding, decoder.head]) add(weight, embeddingScheme);
  return plan;
}
