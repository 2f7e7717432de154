/**
 * Qwen 2 and 2.5: biases of queries, keys and values; a sliding window in the layers from
 * `max_window_layers` on, where `use_sliding_window` turns it on.
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, mlp, normsBefore } from "./parts.ts";
import { layerTypes, slidingWindow } from "./windows.ts";

/** Qwen 3 has them too. */
export const QWEN_DEFAULTS = {
  max_position_embeddings: 32768,
  num_key_value_heads: 32,
  sliding_window: 4096,
  max_window_layers: 28,
};

export function qwen2(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(QWEN_DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const windows = qwenWindows(config, d.layers);
  return decoder(config, d, (layer, index) => ({
    attention: attention(layer, d, { window: windows[index] }, { qkv: true, o: false }),
    mlp: mlp(layer, d, activation),
    norms: normsBefore(layer, d),
  }));
}

/** Each layer's window, 0 for none. */
export function qwenWindows(config: ModelConfig, layers: number): number[] {
  const window = config.flag("use_sliding_window", false) ? slidingWindow(config) : 0;
  const first = config.number("max_window_layers");
  const types = layerTypes(config, layers, (index) => window > 0 && index >= first);
  return types.map((type) => (type === "sliding_attention" ? window : 0));
}
