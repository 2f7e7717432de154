/**
 * Gemma 2: norms around both sublayers with weights stored minus one, scaled embeddings,
 * soft caps of scores and logits, a sliding window in every other layer.
 *
 * @module
 */
import { UnsupportedError } from "../errors.ts";
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import {
  activationOf,
  attention,
  type Dimensions,
  decoder,
  dimensionsOf,
  mlp,
  normsAround,
} from "./parts.ts";
import { layerTypes, slidingWindow } from "./windows.ts";

/** Gemma 3 has them too, but for its soft caps. */
export const GEMMA_DEFAULTS = {
  num_key_value_heads: 4,
  head_dim: 256,
  hidden_activation: "gelu_pytorch_tanh",
  max_position_embeddings: 8192,
  tie_word_embeddings: true,
  query_pre_attn_scalar: 256,
  sliding_window: 4096,
};

const DEFAULTS = { ...GEMMA_DEFAULTS, attn_logit_softcapping: 50, final_logit_softcapping: 30 };

export function gemma2(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const types = layerTypes(config, d.layers, (index) => index % 2 === 0);
  const window = slidingWindow(config);
  const shared = gemmaAttention(config);
  const softcap = softcapOf(config, "attn_logit_softcapping");
  const activation = activationOf(config, "hidden_activation");
  return decoder(
    config,
    d,
    (layer, index) => ({
      attention: attention(
        layer,
        d,
        { scale: shared.scale, softcap, window: types[index] === "sliding_attention" ? window : 0 },
        shared.bias,
      ),
      mlp: mlp(layer, d, activation),
      norms: normsAround(layer, d),
    }),
    gemmaSurroundings(config, d),
  );
}

/** The scale of scores and the biases of projections. Throws an UnsupportedError for Gemmas that see both ways. */
export function gemmaAttention(config: ModelConfig) {
  if (config.flag("use_bidirectional_attention", false)) {
    throw new UnsupportedError(
      `${config.source}: attention in both directions ("use_bidirectional_attention") is not supported; ` +
        "choose a model that generates text",
    );
  }
  const bias = config.flag("attention_bias", false);
  return { scale: config.positive("query_pre_attn_scalar") ** -0.5, bias: { qkv: bias, o: bias } };
}

/** What Gemmas do around their layers; the scale of embeddings is rounded to float32 as their weights are. */
export function gemmaSurroundings(config: ModelConfig, d: Dimensions) {
  return {
    embeddingScale: Math.fround(Math.sqrt(d.hidden)),
    logitSoftcap: softcapOf(config, "final_logit_softcapping"),
    normOffset: 1 as const,
  };
}

function softcapOf(config: ModelConfig, key: string): number {
  return config.has(key) ? config.positive(key) : 0;
}
