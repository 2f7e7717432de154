import { type HeadCounts, isKnownArchitecture } from "./architecture.ts";
import { type RopeFactors, ropeScaling } from "./ropeScaling.ts";
import type { Settings } from "./settings.ts";

/** What the configuration takes from the tensors. */
export interface TensorFacts {
  /** Shape by the file's tensor name. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly factors: RopeFactors;
}

/** Several times the deepest model; bounds the lists that go by layer. */
const MAX_LAYERS = 4096;

type Config = Record<string, unknown>;

/** Number of heads; all layers must agree. */
export function headCounts(settings: Settings, architecture: string): HeadCounts {
  const key = `${architecture}.attention.head_count`;
  const query = settings.required(settings.layerCount(key), key);
  const keyValue = settings.layerCount(`${key}_kv`) ?? query;
  if (query < 1 || keyValue < 1) throw settings.error(key, "is 0");
  return { query, keyValue };
}

/**
 * The metadata as a Hugging Face config.json. An architecture without a translation yields only
 * its name as `model_type`.
 */
export function toConfig(settings: Settings, architecture: string, facts: TensorFacts): Config {
  if (!isKnownArchitecture(architecture)) return { model_type: architecture };
  const key = (name: string) => `${architecture}.${name}`;
  const integer = (name: string) => settings.required(settings.integer(key(name)), key(name));
  const { shapes } = facts;
  const heads = headCounts(settings, architecture);
  const hidden = integer("embedding_length");
  const layers = integer("block_count");
  if (layers > MAX_LAYERS) throw settings.error(key("block_count"), `is ${layers}, more than ${MAX_LAYERS}`);
  const headDim = settings.integer(key("attention.key_length")) ?? Math.floor(hidden / heads.query);
  const rotated = settings.integer(key("rope.dimension_count"));
  const embedding = settings.required(shapes.get("token_embd.weight"), "of tensor token_embd.weight");
  const window = settings.integer(key("attention.sliding_window")) || undefined;
  const epsilon = "attention.layer_norm_rms_epsilon";
  const config: Config = {
    hidden_size: hidden,
    intermediate_size: settings.required(
      settings.layerCount(key("feed_forward_length")),
      key("feed_forward_length"),
    ),
    num_hidden_layers: layers,
    num_attention_heads: heads.query,
    num_key_value_heads: heads.keyValue,
    head_dim: headDim,
    vocab_size: embedding[0],
    max_position_embeddings: integer("context_length"),
    rms_norm_eps: settings.required(settings.number(key(epsilon)), key(epsilon)),
    rope_theta: settings.number(key("rope.freq_base")) ?? 10000,
    tie_word_embeddings: !shapes.has("output.weight"),
    attention_bias: shapes.has("blk.0.attn_q.bias") || shapes.has("blk.0.attn_qkv.bias"),
    ...tokenIds(settings),
  };
  if (rotated !== undefined && rotated > 0 && rotated < headDim)
    config.partial_rotary_factor = rotated / headDim;
  const scaling = ropeScaling(settings, architecture, config, facts.factors);
  if (scaling !== undefined) config.rope_scaling = scaling;
  if (scaling?.original_max_position_embeddings !== undefined && architecture === "phi3") {
    config.original_max_position_embeddings = scaling.original_max_position_embeddings;
  }
  return {
    ...config,
    ...specifics(settings, architecture, { heads, hidden, layers, headDim, window, shapes }),
  };
}

interface Dimensions {
  readonly heads: HeadCounts;
  readonly hidden: number;
  readonly layers: number;
  readonly headDim: number;
  readonly window: number | undefined;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
}

function specifics(settings: Settings, architecture: string, dimensions: Dimensions): Config {
  const { layers, window, shapes } = dimensions;
  switch (architecture) {
    case "llama": {
      const mlp_bias = shapes.has("blk.0.ffn_up.bias");
      // Converters write Mistral as llama; its sliding window is what tells.
      if (window === undefined) return { ...named("LlamaForCausalLM", "llama"), mlp_bias };
      return { ...named("MistralForCausalLM", "mistral"), sliding_window: window };
    }
    case "qwen2":
      return { ...named("Qwen2ForCausalLM", "qwen2"), use_sliding_window: false };
    case "qwen3":
      return { ...named("Qwen3ForCausalLM", "qwen3"), use_sliding_window: false };
    case "phi3":
      return { ...named("Phi3ForCausalLM", "phi3"), sliding_window: window ?? null };
    case "olmo2":
      return named("Olmo2ForCausalLM", "olmo2");
    case "smollm3":
      // The file does not say which layers go without positions; the architecture fixes every fourth.
      return {
        ...named("SmolLM3ForCausalLM", "smollm3"),
        mlp_bias: shapes.has("blk.0.ffn_up.bias"),
        no_rope_layer_interval: 4,
        no_rope_layers: Array.from({ length: layers }, (_, layer) => ((layer + 1) % 4 === 0 ? 0 : 1)),
        use_sliding_window: false,
        sliding_window: null,
      };
    case "gemma2":
      return { ...named("Gemma2ForCausalLM", "gemma2"), ...gemma(settings, architecture, dimensions, 2, 46) };
    default:
      return {
        ...named("Gemma3ForCausalLM", "gemma3_text"),
        ...gemma(settings, architecture, dimensions, 6, 62),
        rope_local_base_freq: settings.number(`${architecture}.rope.freq_base_swa`) ?? 10000,
      };
  }
}

/** `layersOf27B`: the size whose queries are scaled by hidden / heads instead of the head size. */
function gemma(
  settings: Settings,
  architecture: string,
  { heads, hidden, layers, headDim, window }: Dimensions,
  period: number,
  layersOf27B: number,
): Config {
  const scale = settings.number(`${architecture}.attention.scale`);
  const byHead = layers === layersOf27B ? hidden / heads.query : headDim;
  return {
    hidden_activation: "gelu_pytorch_tanh",
    query_pre_attn_scalar: scale ? 1 / scale ** 2 : byHead,
    sliding_window: window ?? 4096,
    attn_logit_softcapping: settings.number(`${architecture}.attn_logit_softcapping`) ?? null,
    final_logit_softcapping: settings.number(`${architecture}.final_logit_softcapping`) ?? null,
    layer_types: Array.from({ length: layers }, (_, layer) =>
      (layer + 1) % period === 0 ? "full_attention" : "sliding_attention",
    ),
  };
}

function named(className: string, model_type: string): Config {
  const activation = model_type.startsWith("gemma") ? {} : { hidden_act: "silu" };
  return { architectures: [className], model_type, ...activation };
}

/** Ids of the tokens with a role, in config.json's names; those absent are left out. */
function tokenIds(settings: Settings): Config {
  const ids: Config = {};
  for (const [name, key] of [
    ["bos_token_id", "bos_token_id"],
    ["eos_token_id", "eos_token_id"],
    ["pad_token_id", "padding_token_id"],
  ]) {
    const id = settings.integer(`tokenizer.ggml.${key}`);
    if (id !== undefined) ids[name] = id;
  }
  return ids;
}

/** generation_config.json: the token ids, with every token that ends a turn as `eos_token_id`. */
export function toGenerationConfig(settings: Settings): Config {
  const ids = tokenIds(settings);
  const ends = new Set<unknown>();
  if (ids.eos_token_id !== undefined) ends.add(ids.eos_token_id);
  for (const role of ["eot", "eom"]) {
    const id = settings.integer(`tokenizer.ggml.${role}_token_id`);
    if (id !== undefined) ends.add(id);
  }
  return ends.size > 1 ? { ...ids, eos_token_id: [...ends] } : ids;
}
