/**
 * What the architectures' files are made of: the spellings that nearly all of them share.
 *
 * @module
 */
import { UnsupportedError } from "../errors.ts";
import type { ModelConfig } from "./config.ts";
import type { AttentionSpec, DecoderSpec, LayerSpec, LinearSpec, MlpSpec, NormSpec } from "./decoder.ts";
import { ropeFromConfig } from "./ropeConfig.ts";

/** Sizes, and where the tensors lie. */
export interface Dimensions {
  /** What all names but the head's begin with, usually `model`. */
  readonly stem: string;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly intermediate: number;
  readonly vocabulary: number;
}

export function dimensionsOf(config: ModelConfig, stem = "model"): Dimensions {
  const hidden = config.size("hidden_size");
  const heads = config.size("num_attention_heads");
  const kvHeads = config.size("num_key_value_heads", heads);
  if (heads % kvHeads !== 0)
    throw config.error("num_key_value_heads", `is ${kvHeads}, no divisor of ${heads} heads`);
  return {
    stem,
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

function norm(prefix: string, size: number): NormSpec {
  return { weight: `${prefix}.weight`, size };
}

/** Separate projections under `self_attn`, scores over sqrt(headSize), all positions seen. */
export function attention(
  layer: string,
  d: Dimensions,
  parts: Partial<AttentionSpec> = {},
  bias: { readonly qkv: boolean; readonly o: boolean } = { qkv: false, o: false },
): AttentionSpec {
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
    ...parts,
  };
}

/** Norms of queries and keys: over each head, or over the whole row. */
export function queryKeyNorms(layer: string, d: Dimensions, over: "head" | "row") {
  const heads = over === "head" ? [1, 1] : [d.heads, d.kvHeads];
  return {
    qNorm: norm(`${layer}.self_attn.q_norm`, heads[0] * d.headSize),
    kNorm: norm(`${layer}.self_attn.k_norm`, heads[1] * d.headSize),
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

/** By transformers' names. */
const ACTIVATIONS: Readonly<Record<string, MlpSpec["activation"]>> = {
  silu: "silu",
  swish: "silu",
  gelu_pytorch_tanh: "geluTanh",
  gelu_new: "geluTanh",
};

/** The activation that the config names under `key`. Throws an UnsupportedError that lists the known ones. */
export function activationOf(config: ModelConfig, key = "hidden_act"): MlpSpec["activation"] {
  const name = config.text(key, "silu");
  if (!Object.hasOwn(ACTIVATIONS, name)) {
    const known = Object.keys(ACTIVATIONS).join(", ");
    throw new UnsupportedError(
      `${config.source}: activation "${name}" ("${key}" of its config) is not supported; supported: ${known}`,
    );
  }
  return ACTIVATIONS[name];
}

/** Norms before both sublayers, Llama's way. */
export function normsBefore(layer: string, d: Dimensions): LayerSpec["norms"] {
  return {
    beforeAttention: norm(`${layer}.input_layernorm`, d.hidden),
    beforeMlp: norm(`${layer}.post_attention_layernorm`, d.hidden),
  };
}

/** Norms after both sublayers, OLMo 2's way. */
export function normsAfter(layer: string, d: Dimensions): LayerSpec["norms"] {
  return {
    afterAttention: norm(`${layer}.post_attention_layernorm`, d.hidden),
    afterMlp: norm(`${layer}.post_feedforward_layernorm`, d.hidden),
  };
}

/** Norms before and after both sublayers, Gemma's way. */
export function normsAround(layer: string, d: Dimensions): LayerSpec["norms"] {
  return {
    ...normsAfter(layer, d),
    beforeAttention: norm(`${layer}.input_layernorm`, d.hidden),
    beforeMlp: norm(`${layer}.pre_feedforward_layernorm`, d.hidden),
  };
}

/** The layers by name and number, and everything around them; `parts` replaces what an architecture does differently. */
export function decoder(
  config: ModelConfig,
  d: Dimensions,
  layer: (name: string, index: number) => LayerSpec,
  parts: Partial<DecoderSpec> = {},
): DecoderSpec {
  const embedding = linear(`${d.stem}.embed_tokens`, d.vocabulary, d.hidden);
  const tied = config.flag("tie_word_embeddings", false);
  const ropes = parts.ropes ?? [ropeFromConfig(config, d.headSize)];
  return {
    architecture: config.text("model_type"),
    vocabularySize: d.vocabulary,
    hiddenSize: d.hidden,
    contextLength: Math.max(config.size("max_position_embeddings"), ...ropes.map(({ reach }) => reach ?? 0)),
    embedding,
    embeddingScale: 1,
    layers: Array.from({ length: d.layers }, (_, index) => layer(`${d.stem}.layers.${index}`, index)),
    ropes,
    finalNorm: norm(`${d.stem}.norm`, d.hidden),
    head: tied ? embedding : linear("lm_head", d.vocabulary, d.hidden),
    logitSoftcap: 0,
    normEpsilon: config.positive("rms_norm_eps", 1e-6),
    normOffset: 0,
    ...parts,
  };
}
