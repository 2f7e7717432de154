import { CheckpointError } from "../../errors.ts";
import type { ByteSource, Checkpoint, Tensor } from "../checkpoint.ts";
import { denseTensor, readFloats } from "../denseTensor.ts";
import { rowTarget } from "../shape.ts";
import { readLlama2cTokenizer } from "./tokenizer.ts";

/**
 * llama2.c's legacy file: seven int32 (dim, hidden dim, layers, heads, key/value heads,
 * vocabulary, context), then float32 tensors, one kind after another over all layers, then
 * tables of rotary angles. A negative vocabulary announces a head of its own.
 * Source: llama2.c, export.py `legacy_export` and run.c `memory_map_weights`.
 *
 * @module
 */

const HEADER_BYTES = 28;
const FLOAT_BYTES = 4;

interface Dimensions {
  readonly hidden: number;
  readonly feedForward: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly vocabulary: number;
  readonly context: number;
  readonly tied: boolean;
}

/** True when the header's dimensions are sane and their tensors fill the file (a tokenizer may follow). */
export async function isLlama2c(source: ByteSource): Promise<boolean> {
  return (await readDimensions(source)) !== undefined;
}

/** Opens a llama2.c model; a tokenizer.bin may follow in the same file. */
export async function openLlama2c(source: ByteSource): Promise<Checkpoint> {
  try {
    const dimensions = await readDimensions(source);
    if (dimensions === undefined) {
      throw new CheckpointError(source.name, "no llama2.c header, or its tensors do not fit the file", {
        offset: 0,
      });
    }
    const { tensors, end } = layOut(source, dimensions);
    const { vocabulary } = dimensions;
    const tokenizer = end < source.size ? await readLlama2cTokenizer(source, end, vocabulary) : undefined;
    return {
      source: source.name,
      format: "llama2.c",
      config: configOf(dimensions),
      generationConfig: { bos_token_id: 1, eos_token_id: 2 },
      tensors,
      tokenizer,
      close: () => source.close(),
    };
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function readDimensions(source: ByteSource): Promise<Dimensions | undefined> {
  if (source.size < HEADER_BYTES) return undefined;
  const bytes = await source.read(0, HEADER_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const [hidden, feedForward, layers, heads, keyValueHeads, signed, context] = Array.from(
    { length: 7 },
    (_, i) => view.getInt32(4 * i, true),
  );
  const vocabulary = Math.abs(signed);
  const counts = [hidden, feedForward, layers, heads, keyValueHeads, vocabulary, context];
  const sane =
    counts.every((n) => n > 0 && n < 2 ** 24) &&
    layers < 1024 &&
    hidden % heads === 0 &&
    heads % keyValueHeads === 0 &&
    (hidden / heads) % 2 === 0;
  if (!sane) return undefined;
  const tied = signed > 0;
  const dimensions = { hidden, feedForward, layers, heads, keyValueHeads, vocabulary, context, tied };
  return dataEnd(dimensions) <= source.size ? dimensions : undefined;
}

/** The kinds of tensors in file order: name within a layer (or alone), rows, columns. */
function kinds(d: Dimensions): { name: string; perLayer: boolean; shape: number[]; heads?: number }[] {
  const keyValue = (d.hidden / d.heads) * d.keyValueHeads;
  return [
    { name: "model.embed_tokens", perLayer: false, shape: [d.vocabulary, d.hidden] },
    { name: "input_layernorm", perLayer: true, shape: [d.hidden] },
    { name: "self_attn.q_proj", perLayer: true, shape: [d.hidden, d.hidden], heads: d.heads },
    { name: "self_attn.k_proj", perLayer: true, shape: [keyValue, d.hidden], heads: d.keyValueHeads },
    { name: "self_attn.v_proj", perLayer: true, shape: [keyValue, d.hidden] },
    { name: "self_attn.o_proj", perLayer: true, shape: [d.hidden, d.hidden] },
    { name: "post_attention_layernorm", perLayer: true, shape: [d.hidden] },
    { name: "mlp.gate_proj", perLayer: true, shape: [d.feedForward, d.hidden] },
    { name: "mlp.down_proj", perLayer: true, shape: [d.hidden, d.feedForward] },
    { name: "mlp.up_proj", perLayer: true, shape: [d.feedForward, d.hidden] },
    { name: "model.norm", perLayer: false, shape: [d.hidden] },
  ];
}

/** Cosines and sines, [context, head size / 2] each. */
function angleBytes(d: Dimensions): number {
  return d.context * (d.hidden / d.heads) * FLOAT_BYTES;
}

function bytesOfShape(shape: readonly number[]): number {
  return shape.reduce((product, n) => product * n, FLOAT_BYTES);
}

function dataEnd(d: Dimensions): number {
  const weights = kinds(d).reduce(
    (sum, kind) => sum + bytesOfShape(kind.shape) * (kind.perLayer ? d.layers : 1),
    0,
  );
  return HEADER_BYTES + weights + angleBytes(d) + (d.tied ? 0 : bytesOfShape([d.vocabulary, d.hidden]));
}

function layOut(source: ByteSource, d: Dimensions): { tensors: Map<string, Tensor>; end: number } {
  const tensors = new Map<string, Tensor>();
  let offset = HEADER_BYTES;
  const add = (name: string, shape: number[], heads?: number) => {
    const tensor =
      heads === undefined
        ? denseTensor(name, "F32", shape, source, offset)
        : rotaryTensor(name, shape, heads, source, offset);
    tensors.set(name, tensor);
    offset += bytesOfShape(shape);
  };
  for (const { name, perLayer, shape, heads } of kinds(d)) {
    if (!perLayer) add(`${name}.weight`, shape);
    else for (let i = 0; i < d.layers; i++) add(`model.layers.${i}.${name}.weight`, shape, heads);
  }
  offset += angleBytes(d);
  if (!d.tied) add("lm_head.weight", [d.vocabulary, d.hidden]);
  return { tensors, end: offset };
}

/**
 * Rows of a query or key projection, stored for rotary pairs (2i, 2i + 1),
 * in Hugging Face's order for pairs (i, i + head size / 2).
 */
function rotaryTensor(
  name: string,
  shape: number[],
  heads: number,
  source: ByteSource,
  offset: number,
): Tensor {
  const headSize = shape[0] / heads;
  return {
    name,
    shape,
    encoding: "F32",
    byteLength: bytesOfShape(shape),
    async readRows(start, end, target) {
      const { rowSize, out } = rowTarget(name, shape, start, end, target);
      if (start === end) return out;
      const firstHead = Math.floor(start / headSize);
      const base = firstHead * headSize;
      const stored = new Float32Array((Math.ceil(end / headSize) - firstHead) * headSize * rowSize);
      await readFloats(source, offset + base * rowSize * FLOAT_BYTES, "F32", stored);
      for (let row = start; row < end; row++) {
        const within = row % headSize;
        const pair = within % (headSize / 2);
        const from = row - within - base + 2 * pair + (within >= headSize / 2 ? 1 : 0);
        out.set(stored.subarray(from * rowSize, (from + 1) * rowSize), (row - start) * rowSize);
      }
      return out;
    },
  };
}

function configOf(d: Dimensions): Record<string, unknown> {
  return {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: d.hidden,
    intermediate_size: d.feedForward,
    num_hidden_layers: d.layers,
    num_attention_heads: d.heads,
    num_key_value_heads: d.keyValueHeads,
    head_dim: d.hidden / d.heads,
    vocab_size: d.vocabulary,
    max_position_embeddings: d.context,
    hidden_act: "silu",
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: d.tied,
    attention_bias: false,
    mlp_bias: false,
    bos_token_id: 1,
    eos_token_id: 2,
  };
}
