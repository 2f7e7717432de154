/**
 * Llama 2 and 3 and what shares their shape (Mistral, SmolLM2, MiniMind).
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import type { AttentionSpec, DecoderSpec, LayerSpec, LinearSpec, MlpSpec, NormSpec } from "./decoder.ts";
import { ropeFromConfig } from "./ropeConfig.ts";

/** Sizes that nearly every architecture spells the same way. */
export interface Dimensions {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly intermediate: number;
  readonly vocabulary: number;
}

export function dimensionsOf(config: ModelConfig): Dimensions {
  const hidden = config.size("hidden_size");
  const heads = config.size("num_attention_heads");
  const kvHeads = config.size("num_key_value_heads", heads);
  if (heads % kvHeads !== 0)
    throw config.error("num_key_value_heads", `is ${kvHeads}, no divisor of ${heads} heads`);
  return {
    hidden,
    layers: config.size("num_hidden_layers", undefined, 4096),
    heads,
    kvHeads,
    headSize: config.size("head_dim", Math.floor(hidden / heads), 4096),
    intermediate: config.size("intermediate_size"),
    vocabulary: config.size("vocab_size"),
  };
}

export function linear(prefix: string, rows: number, columns: number, bias = false): LinearSpec {
  return { weight: `${prefix}.weight`, bias: bias ? `${prefix}.bias` : undefined, rows, columns };
}

export function norm(prefix: string, size: number): NormSpec {
  return { weight: `${prefix}.weight`, size };
}

/** Separate projections under `self_attn`, scores over sqrt(headSize). */
export function attention(layer: string, d: Dimensions, bias = { qkv: false, o: false }): AttentionSpec {
  const prefix = `${layer}.self_attn`;
  const [width, kvWidth] = [d.heads * d.headSize, d.kvHeads * d.headSize];
  return {
    q: linear(`${prefix}.q_proj`, width, d.hidden, bias.qkv),
    k: linear(`${prefix}.k_proj`, kvWidth, d.hidden, bias.qkv),
    v: linear(`${prefix}.v_proj`, kvWidth, d.hidden, bias.qkv),
    o: linear(`${prefix}.o_proj`, d.hidden, width, bias.o),
    heads: d.heads,
    kvHeads: d.kvHeads,
    headSize: d.headSize,
    scale: 1 / Math.sqrt(d.headSize),
    window: 0,
    softcap: 0,
    rope: 0,
  };
}

export function mlp(layer: string, d: Dimensions, activation: MlpSpec["activation"], bias = false): MlpSpec {
  const prefix = `${layer}.mlp`;
  return {
    gate: linear(`${prefix}.gate_proj`, d.intermediate, d.hidden, bias),
    up: linear(`${prefix}.up_proj`, d.intermediate, d.hidden, bias),
    down: linear(`${prefix}.down_proj`, d.hidden, d.intermediate, bias),
    activation,
  };
}

/** Everything around the layers. */
export function decoder(
  config: ModelConfig,
  d: Dimensions,
  layers: readonly LayerSpec[],
  parts: Partial<DecoderSpec> = {},
): DecoderSpec {
  const embedding = linear("model.embed_tokens", d.vocabulary, d.hidden);
  return {
    architecture: config.text("model_type"),
    vocabularySize: d.vocabulary,
    hiddenSize: d.hidden,
    contextLength: config.size("max_position_embeddings"),
    embedding,
    embeddingScale: 1,
    layers,
    ropes: [ropeFromConfig(config, d.headSize)],
    finalNorm: norm("model.norm", d.hidden),
    head: config.flag("tie_word_embeddings", false) ? embedding : linear("lm_head", d.vocabulary, d.hidden),
    logitSoftcap: 0,
    normEpsilon: config.number("rms_norm_eps", 1e-6),
    normOffset: 0,
    ...parts,
  };
}

export function llama(config: ModelConfig): DecoderSpec {
  const d = dimensionsOf(config);
  const bias = config.flag("attention_bias", false);
  const layers = Array.from({ length: d.layers }, (_, i): LayerSpec => {
    const layer = `model.layers.${i}`;
    return {
      attention: attention(layer, d, { qkv: bias, o: bias }),
      mlp: mlp(layer, d, "silu", config.flag("mlp_bias", false)),
      norms: {
        beforeAttention: norm(`${layer}.input_layernorm`, d.hidden),
        beforeMlp: norm(`${layer}.post_attention_layernorm`, d.hidden),
      },
    };
  });
  return decoder(config, d, layers);
}
