/**
 * SmolLM3: Llama with layers whose queries and keys know no positions (NoPE).
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, mlp, normsBefore } from "./parts.ts";
import { layerTypes, slidingWindow } from "./windows.ts";

const DEFAULTS = {
  max_position_embeddings: 32768,
  num_key_value_heads: 4,
  rope_theta: 2e6,
  no_rope_layer_interval: 4,
  tie_word_embeddings: true,
};

export function smollm3(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const bias = config.flag("attention_bias", false);
  const mlpBias = config.flag("mlp_bias", false);
  const turns = turningLayers(config, d.layers);
  const slides = config.flag("use_sliding_window", false);
  const types = layerTypes(config, d.layers, (index) => slides && !turns[index]);
  const window = slidingWindow(config);
  return decoder(config, d, (layer, index) => ({
    attention: attention(
      layer,
      d,
      { rope: turns[index] ? 0 : undefined, window: types[index] === "sliding_attention" ? window : 0 },
      { qkv: bias, o: bias },
    ),
    mlp: mlp(layer, d, activation, mlpBias),
    norms: normsBefore(layer, d),
  }));
}

/** `no_rope_layers` holds 1 for layers that do turn; without it every `no_rope_layer_interval`-th does not. */
function turningLayers(config: ModelConfig, layers: number): boolean[] {
  if (!config.has("no_rope_layers")) {
    const interval = config.size("no_rope_layer_interval");
    return Array.from({ length: layers }, (_, index) => (index + 1) % interval !== 0);
  }
  const turns = config.numbers("no_rope_layers");
  if (turns.length < layers)
    throw config.error("no_rope_layers", `has ${turns.length} entries for ${layers} layers`);
  return turns.map((value) => value !== 0);
}
