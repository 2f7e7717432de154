/**
 * Mistral: Llama with a sliding window in every layer.
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, mlp, normsBefore } from "./parts.ts";
import { slidingWindow } from "./windows.ts";

const DEFAULTS = { max_position_embeddings: 131072, num_key_value_heads: 8, sliding_window: 4096 };

export function mistral(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const window = slidingWindow(config);
  return decoder(config, d, (layer) => ({
    attention: attention(layer, d, { window }),
    mlp: mlp(layer, d, activation),
    norms: normsBefore(layer, d),
  }));
}
