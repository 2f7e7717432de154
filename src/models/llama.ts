/**
 * Llama 2 and 3 and what shares their shape (SmolLM2, TinyLlama).
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, mlp, normsBefore } from "./parts.ts";

const DEFAULTS = { max_position_embeddings: 2048 };

export function llama(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const bias = config.flag("attention_bias", false);
  const mlpBias = config.flag("mlp_bias", false);
  return decoder(config, d, (layer) => ({
    attention: attention(layer, d, {}, { qkv: bias, o: bias }),
    mlp: mlp(layer, d, activation, mlpBias),
    norms: normsBefore(layer, d),
  }));
}
