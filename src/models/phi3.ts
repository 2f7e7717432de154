/**
 * Phi-3 and Phi-4-mini: fused projections, LongRoPE, perhaps only part of a head turned.
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { DecoderSpec } from "./decoder.ts";
import { activationOf, attention, decoder, dimensionsOf, linear, normsBefore } from "./parts.ts";
import { ropeFromConfig } from "./ropeConfig.ts";
import { slidingWindow } from "./windows.ts";

const DEFAULTS = {
  max_position_embeddings: 4096,
  original_max_position_embeddings: 4096,
  rms_norm_eps: 1e-5,
};

/** What early checkpoints call LongRoPE. */
const ALIASES = { su: "longrope", yarn: "longrope" };

export function phi3(given: ModelConfig): DecoderSpec {
  const config = given.withDefaults(DEFAULTS);
  const d = dimensionsOf(config);
  const activation = activationOf(config);
  const window = slidingWindow(config);
  const [width, kvWidth] = [d.heads * d.headSize, d.kvHeads * d.headSize];
  const layerOf = (layer: string) => {
    const qkv = (rows: number, firstRow: number) => ({
      ...linear(`${layer}.self_attn.qkv_proj`, rows, d.hidden),
      firstRow,
    });
    const gateUp = linear(`${layer}.mlp.gate_up_proj`, d.intermediate, d.hidden);
    return {
      attention: attention(layer, d, {
        q: qkv(width, 0),
        k: qkv(kvWidth, width),
        v: qkv(kvWidth, width + kvWidth),
        window,
      }),
      mlp: {
        gate: { ...gateUp, firstRow: 0 },
        up: { ...gateUp, firstRow: d.intermediate },
        down: linear(`${layer}.mlp.down_proj`, d.hidden, d.intermediate),
        activation,
      },
      norms: normsBefore(layer, d),
    };
  };
  return decoder(config, d, layerOf, { ropes: [ropeFromConfig(config, d.headSize, ALIASES)] });
}
