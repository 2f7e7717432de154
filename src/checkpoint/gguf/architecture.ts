/**
 * How the architectures that llama.cpp's converter writes differ from their Hugging Face form.
 *
 * @module
 */
import type { Arrangement } from "./tensor.ts";

/** What the file says about attention, as far as tensors depend on it. */
export interface HeadCounts {
  readonly query: number;
  readonly keyValue: number;
}

interface Naming {
  /** Names inside a layer that replace or extend the common ones. */
  readonly layer?: Readonly<Record<string, string>>;
  /** Query and key rows are interleaved within each head. */
  readonly interleaved?: boolean;
  /** Norm weights are stored plus one. */
  readonly shiftedNorms?: boolean;
}

const TOP: Readonly<Record<string, string>> = {
  token_embd: "model.embed_tokens",
  output_norm: "model.norm",
  output: "lm_head",
};

const LAYER: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};

const NORMS_AROUND_BLOCKS = {
  post_attention_norm: "post_attention_layernorm",
  ffn_norm: "pre_feedforward_layernorm",
  post_ffw_norm: "post_feedforward_layernorm",
};

/** By `general.architecture`. */
const NAMINGS: Readonly<Record<string, Naming>> = {
  llama: { interleaved: true },
  smollm3: { interleaved: true },
  qwen2: {},
  qwen3: {},
  phi3: { layer: { attn_qkv: "self_attn.qkv_proj", ffn_up: "mlp.gate_up_proj" } },
  gemma2: { layer: NORMS_AROUND_BLOCKS, shiftedNorms: true },
  gemma3: { layer: NORMS_AROUND_BLOCKS, shiftedNorms: true },
  olmo2: { layer: NORMS_AROUND_BLOCKS },
};

/** Whether the architecture's tensors and settings can be told in Hugging Face's terms. */
export function isKnownArchitecture(architecture: string): boolean {
  return Object.hasOwn(NAMINGS, architecture);
}

/** The Hugging Face form of a tensor; names that have none are kept (`rope_freqs.weight`, unknown architectures). */
export function arrange(architecture: string, name: string, heads: HeadCounts): Arrangement {
  if (!isKnownArchitecture(architecture)) return { name };
  const naming = NAMINGS[architecture];
  const match = /^(?:blk\.(\d+)\.)?([a-z_]+)\.(weight|bias)$/.exec(name);
  if (match === null) return { name };
  const [, layer, part, kind] = match;
  const names = layer === undefined ? TOP : { ...LAYER, ...naming.layer };
  if (!Object.hasOwn(names, part)) return { name };
  const newName = `${layer === undefined ? "" : `model.layers.${Number(layer)}.`}${names[part]}.${kind}`;
  const rotated = naming.interleaved && (part === "attn_q" || part === "attn_k");
  return {
    name: newName,
    interleavedHeads: rotated ? (part === "attn_q" ? heads.query : heads.keyValue) : undefined,
    addend: naming.shiftedNorms && part.endsWith("norm") ? -1 : undefined,
  };
}
