import { UnsupportedError } from "../errors.ts";
import { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { llama } from "./llama.ts";

/** By `model_type`. */
const architectures: Readonly<Record<string, (config: ModelConfig) => DecoderSpec>> = { llama };

/** The decoder that a checkpoint's config describes. Throws an UnsupportedError that lists what is supported. */
export function decoderFor(source: string, config: Readonly<Record<string, unknown>>): DecoderSpec {
  const reader = new ModelConfig(source, config);
  const type = reader.text("model_type");
  if (!Object.hasOwn(architectures, type)) {
    const known = Object.keys(architectures).join(", ");
    throw new UnsupportedError(`${source}: architecture "${type}" is not supported; supported: ${known}`);
  }
  return architectures[type](reader);
}
