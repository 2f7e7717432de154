/**
 * OLMo 2: norms after the sublayers only, queries and keys normed over the whole row.
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, mlp, normsAfter, queryKeyNorms } from "./parts.ts";

const DEFAULTS = { max_position_embeddings: 2048, rms_norm_eps: 1e-5 };

export function olmo2(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const bias = config.flag("attention_bias", false);
  return decoder(config, d, (layer) => ({
    attention: attention(layer, d, queryKeyNorms(layer, d, "row"), { qkv: bias, o: bias }),
    mlp: mlp(layer, d, activation),
    norms: normsAfter(layer, d),
  }));
}
