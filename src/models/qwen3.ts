/**
 * Qwen 3, dense: Qwen 2 with norms of each head's query and key, and a head size of its own.
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, mlp, normsBefore, queryKeyNorms } from "./parts.ts";
import { QWEN_DEFAULTS, qwenWindows } from "./qwen2.ts";

const DEFAULTS = { ...QWEN_DEFAULTS, head_dim: 128 };

export function qwen3(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const bias = config.flag("attention_bias", false);
  const windows = qwenWindows(config, d.layers);
  return decoder(config, d, (layer, index) => ({
    attention: attention(
      layer,
      d,
      { window: windows[index], ...queryKeyNorms(layer, d, "head") },
      { qkv: bias, o: bias },
    ),
    mlp: mlp(layer, d, activation),
    norms: normsBefore(layer, d),
  }));
}
