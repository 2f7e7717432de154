import { UnsupportedError } from "../errors.ts";
import { ModelConfig, type TensorNames } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3, gemma3Text } from "./gemma3.ts";
import { llama } from "./llama.ts";
import { mistral } from "./mistral.ts";
import { olmo2 } from "./olmo2.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import { smollm3 } from "./smollm3.ts";

type Architecture = (config: ModelConfig, tensors: TensorNames) => DecoderSpec;

/** By `model_type`. */
const architectures: Readonly<Record<string, Architecture>> = {
  llama,
  mistral,
  qwen2,
  qwen3,
  phi3,
  gemma2,
  gemma3,
  gemma3_text: gemma3Text,
  smollm3,
  olmo2,
};

/**
 * The decoder that a checkpoint's config describes. `tensors` decides between spellings where an
 * architecture has several (Gemma 3 within a multimodal model).
 *
 * Throws an UnsupportedError that names the architecture (or activation, rope, layer type) and lists
 * the supported ones, and a CheckpointError that names the key for configs that make no sense.
 */
export function decoderFor(
  source: string,
  config: Readonly<Record<string, unknown>>,
  tensors: TensorNames = new Set<string>(),
): DecoderSpec {
  const reader = new ModelConfig(source, config);
  const type = reader.text("model_type");
  if (!Object.hasOwn(architectures, type)) {
    const known = Object.keys(architectures).join(", ");
    throw new UnsupportedError(`${source}: architecture "${type}" is not supported; supported: ${known}`);
  }
  return architectures[type](reader, tensors);
}
