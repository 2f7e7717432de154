/**
 * Gemma 3, text: Gemma 2 without the cap of scores, with norms of each head's query and key,
 * five windowed layers to each full one, and a rope for either kind.
 *
 * @module
 */
import type { ModelConfig, TensorNames } from "./config.ts";
import type { DecoderSpec, LinearSpec } from "./decoder.ts";
import { GEMMA_DEFAULTS, gemmaAttention, gemmaSurroundings } from "./gemma2.ts";
import {
  activationOf,
  attention,
  type Dimensions,
  decoder,
  dimensionsOf,
  linear,
  mlp,
  normsAround,
  queryKeyNorms,
} from "./parts.ts";
import type { RopeSpec } from "./rope.ts";
import { ropeFromParameters } from "./ropeConfig.ts";
import { layerTypes, slidingWindow } from "./windows.ts";

/** Published multimodal configs leave out whatever equals these. */
const DEFAULTS = {
  ...GEMMA_DEFAULTS,
  vocab_size: 262208,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 26,
  num_attention_heads: 8,
  max_position_embeddings: 131072,
  sliding_window_pattern: 6,
};

/** `gemma3_text`, a model of its own. */
export function gemma3Text(given: ModelConfig): DecoderSpec {
  return spec(given.withDefaults(DEFAULTS), "model");
}

/** `gemma3`, the text half of a multimodal model: its config is `text_config`, its tensors have longer names. */
export function gemma3(given: ModelConfig, tensors: TensorNames): DecoderSpec {
  const text = given.object("text_config");
  if (text === undefined) throw given.error("text_config", "is missing");
  const config = text.withDefaults({ ...DEFAULTS, model_type: "gemma3_text" });
  const stems = ["model.language_model", "language_model.model", "model"];
  const stem = stems.find((name) => tensors.has(`${name}.norm.weight`)) ?? stems[0];
  const tied = given.flag("tie_word_embeddings", config.flag("tie_word_embeddings", true));
  const decoder = spec(config, stem);
  return { ...decoder, head: tied ? decoder.embedding : headOf(decoder, stem) };
}

function headOf(decoder: DecoderSpec, stem: string): LinearSpec {
  const prefix = stem === "language_model.model" ? "language_model.lm_head" : "lm_head";
  return linear(prefix, decoder.vocabularySize, decoder.hiddenSize);
}

function spec(config: ModelConfig, stem: string): DecoderSpec {
  const d = dimensionsOf(config, stem);
  const period = config.size("sliding_window_pattern");
  const types = layerTypes(config, d.layers, (index) => (index + 1) % period !== 0);
  const window = slidingWindow(config);
  const shared = gemmaAttention(config);
  const activation = activationOf(config, "hidden_activation");
  return decoder(
    config,
    d,
    (layer, index) => {
      const sliding = types[index] === "sliding_attention";
      return {
        attention: attention(
          layer,
          d,
          {
            scale: shared.scale,
            window: sliding ? window : 0,
            rope: sliding ? 1 : 0,
            ...queryKeyNorms(layer, d, "head"),
          },
          shared.bias,
        ),
        mlp: mlp(layer, d, activation),
        norms: normsAround(layer, d),
      };
    },
    { ...gemmaSurroundings(config, d), ropes: ropes(config, d) },
  );
}

/** For full layers, then for windowed ones. Scaling (`rope_scaling`) is the full layers' alone. */
function ropes(config: ModelConfig, d: Dimensions): RopeSpec[] {
  const byType = config.object("rope_parameters");
  const full = { ...byType?.object("full_attention")?.values, ...config.object("rope_scaling")?.values };
  const sliding = byType?.object("sliding_attention")?.values ?? {};
  return [
    ropeFromParameters(config, d.headSize, {
      rope_theta: config.number("rope_theta", 1e6),
      ...full,
    }),
    ropeFromParameters(config, d.headSize, {
      rope_theta: config.number("rope_local_base_freq", 10000),
      ...sliding,
    }),
  ];
}
