import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TensorEntry } from "../../src/checkpoint/safetensors/header.ts";
import { writeSafetensors } from "../checkpoint/safetensors/writeSafetensors.ts";
import { miniMindFiles } from "../text/miniMind.ts";

const [HIDDEN, LAYERS, HEADS, KV_HEADS, MLP, VOCABULARY] = [32, 2, 4, 2, 64, 6400];

/** Positions of the tiny model. */
export const CONTEXT = 128;

/** Writes a random llama of two layers with MiniMind's tokenizer as a Hugging Face folder. */
export async function writeTinyLlama(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { tokenizer, config, chatTemplate } = miniMindFiles();
  const write = (name: string, value: unknown) => writeFile(join(folder, name), JSON.stringify(value));
  await write("config.json", {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: HIDDEN,
    intermediate_size: MLP,
    num_hidden_layers: LAYERS,
    num_attention_heads: HEADS,
    num_key_value_heads: KV_HEADS,
    vocab_size: VOCABULARY,
    max_position_embeddings: CONTEXT,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    hidden_act: "silu",
    tie_word_embeddings: true,
    bos_token_id: 1,
    eos_token_id: 2,
  });
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { ...config, chat_template: chatTemplate });
  await writeSafetensors(join(folder, "model.safetensors"), entries(), ({ shape }) => {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    for (let i = 0; i < values.length; i++) values[i] = shape.length === 1 ? 1 : random() / 4;
    return new Uint8Array(values.buffer);
  });
}

function entries(): TensorEntry[] {
  const head = HIDDEN / HEADS;
  const tensor = (name: string, ...shape: number[]): TensorEntry => ({ name, dtype: "F32", shape });
  const layers = Array.from({ length: LAYERS }, (_, layer) => {
    const at = `model.layers.${layer}`;
    return [
      tensor(`${at}.input_layernorm.weight`, HIDDEN),
      tensor(`${at}.post_attention_layernorm.weight`, HIDDEN),
      tensor(`${at}.self_attn.q_proj.weight`, HIDDEN, HIDDEN),
      tensor(`${at}.self_attn.k_proj.weight`, KV_HEADS * head, HIDDEN),
      tensor(`${at}.self_attn.v_proj.weight`, KV_HEADS * head, HIDDEN),
      tensor(`${at}.self_attn.o_proj.weight`, HIDDEN, HIDDEN),
      tensor(`${at}.mlp.gate_proj.weight`, MLP, HIDDEN),
      tensor(`${at}.mlp.up_proj.weight`, MLP, HIDDEN),
      tensor(`${at}.mlp.down_proj.weight`, HIDDEN, MLP),
    ];
  });
  return [
    tensor("model.embed_tokens.weight", VOCABULARY, HIDDEN),
    tensor("model.norm.weight", HIDDEN),
    ...layers.flat(),
  ];
}

let state = 12345;

/** From -1 to 1, the same in every run. */
function random(): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 31 - 1;
}
