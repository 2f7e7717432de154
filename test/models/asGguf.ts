import type { Checkpoint, Tensor } from "../../src/checkpoint/checkpoint.ts";
import {
  BOOL,
  type Entry,
  F32,
  STRING,
  type TensorEntry,
  U32,
  writeGguf,
} from "../checkpoint/gguf/writeGguf.ts";

/** How llama.cpp's converter writes an architecture, as far as the tests need it. */
interface Target {
  readonly architecture: string;
  /** Metadata beyond the common, keys without the architecture. */
  readonly settings?: readonly Entry[];
  /** Frequency factors by tensor name. */
  readonly factors?: Readonly<Record<string, readonly number[]>>;
}

const NAMES: Readonly<Record<string, string>> = {
  "model.embed_tokens": "token_embd",
  "model.norm": "output_norm",
  lm_head: "output",
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  "self_attn.qkv_proj": "attn_qkv",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.gate_up_proj": "ffn_up",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
  pre_feedforward_layernorm: "ffn_norm",
  post_feedforward_layernorm: "post_ffw_norm",
};
const INTERLEAVED = new Set(["llama", "smollm3"]);
const NORMS_AROUND = new Set(["gemma2", "gemma3", "olmo2"]);
const SHIFTED = new Set(["gemma2", "gemma3"]);
const Q8_0 = 8;

/** A float checkpoint as a GGUF file; with `quantized`, matrices whose rows hold whole blocks as Q8_0. */
export async function asGguf(
  checkpoint: Checkpoint,
  { architecture, settings = [], factors = {} }: Target,
  quantized = false,
): Promise<Uint8Array> {
  const { config } = checkpoint;
  const number = (key: string) => Number(config[key]);
  const heads = number("num_attention_heads");
  const headSize = Number(config.head_dim ?? number("hidden_size") / heads);
  const entries: Entry[] = [
    ["context_length", U32, number("max_position_embeddings")],
    ["embedding_length", U32, number("hidden_size")],
    ["block_count", U32, number("num_hidden_layers")],
    ["feed_forward_length", U32, number("intermediate_size")],
    ["attention.head_count", U32, heads],
    ["attention.head_count_kv", U32, number("num_key_value_heads")],
    ["attention.key_length", U32, headSize],
    ["attention.value_length", U32, headSize],
    ["attention.layer_norm_rms_epsilon", F32, number("rms_norm_eps")],
    ["vocab_size", U32, number("vocab_size")],
    ...(config.rope_theta === undefined ? [] : [["rope.freq_base", F32, config.rope_theta] as Entry]),
    ...settings,
  ];
  const tensors: TensorEntry[] = Object.entries(factors).map(([name, values]) => float(name, values));
  for (const tensor of checkpoint.tensors.values()) {
    const [, layer, part, kind] = /^(?:model\.layers\.(\d+)\.)?(.*)\.(weight|bias)$/.exec(tensor.name)!;
    const afterAttention = NORMS_AROUND.has(architecture) ? "post_attention_norm" : "ffn_norm";
    const short = part === "post_attention_layernorm" ? afterAttention : NAMES[part];
    const values = await tensor.readRows(0, tensor.shape[0]);
    const stored = INTERLEAVED.has(architecture) && /attn_[qk]$/.test(short);
    const name = `${layer === undefined ? "" : `blk.${layer}.`}${short}.${kind}`;
    const data = stored
      ? interleaved(values, tensor, headSize)
      : SHIFTED.has(architecture) && short.endsWith("norm")
        ? values.map((value) => value + 1)
        : values;
    const shape = [...tensor.shape];
    tensors.push(
      quantized && shape.length === 2 && shape[1] % 32 === 0
        ? { name, shape, type: Q8_0, data: quantize(data) }
        : { ...float(name, data), shape },
    );
  }
  const metadata = entries.map(([key, type, value]): Entry => [`${architecture}.${key}`, type, value]);
  return writeGguf(
    [
      ["general.architecture", STRING, architecture],
      ["tokenizer.ggml.model", STRING, "none"],
      ["tokenizer.ggml.add_bos_token", BOOL, false],
      ...metadata,
    ],
    tensors,
  );
}

function float(name: string, values: ArrayLike<number>): TensorEntry {
  const floats = Float32Array.from(values);
  return { name, shape: [floats.length], type: 0, data: new Uint8Array(floats.buffer) };
}

/** Rows j and j + half of each head side by side. */
function interleaved(values: Float32Array, { shape }: Tensor, headSize: number): Float32Array {
  const rowSize = values.length / shape[0];
  const out = new Float32Array(values.length);
  for (let row = 0; row < shape[0]; row++) {
    const within = row % headSize;
    const from = row - within + (within % 2) * (headSize / 2) + Math.floor(within / 2);
    out.set(values.subarray(from * rowSize, (from + 1) * rowSize), row * rowSize);
  }
  return out;
}

/** Blocks of 32: a float16 scale that is a power of two, 32 signed bytes. */
function quantize(values: Float32Array): Uint8Array {
  const out = new Uint8Array((values.length / 32) * 34);
  for (let block = 0; block < values.length / 32; block++) {
    const part = values.subarray(32 * block, 32 * block + 32);
    const exponent = Math.ceil(Math.log2(Math.max(2 ** -8, ...part.map(Math.abs)) / 127));
    new DataView(out.buffer).setUint16(34 * block, (exponent + 15) << 10, true);
    for (let i = 0; i < 32; i++) out[34 * block + 2 + i] = Math.round(part[i] / 2 ** exponent);
  }
  return out;
}
