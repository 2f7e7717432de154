import { describe, expect, it } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { openGguf } from "../../../src/checkpoint/gguf/open.ts";
import { CheckpointError, UnsupportedError } from "../../../src/errors.ts";
import { openSingle } from "./openSingle.ts";
import {
  ARRAY,
  type Entry,
  F32,
  f32Tensor,
  modelEntries,
  STRING,
  type TensorEntry,
  U32,
  writeGguf,
} from "./writeGguf.ts";

const EMBEDDING = f32Tensor("token_embd.weight", [5, 16]);

function open(entries: Entry[], tensors: TensorEntry[] = [EMBEDDING]) {
  return openSingle(bufferSource(writeGguf(entries, tensors), "model.gguf"));
}

describe("tensors", () => {
  it("puts interleaved query and key rows back into halves, any row range", async () => {
    const q = f32Tensor("blk.0.attn_q.weight", [16, 16]);
    const k = f32Tensor("blk.0.attn_k.weight", [8, 16]);
    const { tensors } = await open(modelEntries("llama"), [EMBEDDING, q, k]);
    for (const [name, rows] of [
      ["q", 16],
      ["k", 8],
    ] as const) {
      const tensor = tensors.get(`model.layers.0.self_attn.${name}_proj.weight`)!;
      // Heads of 4 rows: stored rows 0 1 2 3 are rows 0 2 1 3.
      const stored = (row: number) => 4 * Math.floor(row / 4) + [0, 2, 1, 3][row % 4];
      const all = await tensor.readRows(0, rows);
      for (let row = 0; row < rows; row++) expect(all[16 * row]).toBe(16 * stored(row) + 1);
      for (let start = 0; start <= rows; start++) {
        for (let end = start; end <= rows; end++) {
          expect(await tensor.readRows(start, end)).toEqual(all.slice(16 * start, 16 * end));
        }
      }
      expect(tensor.readBytes).toBeUndefined();
    }
  });

  it("leaves the rows of other architectures alone", async () => {
    const { tensors } = await open(modelEntries("qwen3"), [
      EMBEDDING,
      f32Tensor("blk.0.attn_q.weight", [16, 16]),
    ]);
    const tensor = tensors.get("model.layers.0.self_attn.q_proj.weight")!;
    expect((await tensor.readRows(1, 2))[0]).toBe(17);
    expect(await tensor.readBytes!()).toHaveLength(1024);
  });

  it("takes one from Gemma's norms and names all four", async () => {
    const names = ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"];
    const norms = names.map((name) => f32Tensor(`blk.0.${name}.weight`, [16]));
    const { tensors } = await open(modelEntries("gemma2"), [EMBEDDING, ...norms]);
    const found = ["input", "post_attention", "pre_feedforward", "post_feedforward"];
    for (const name of found) {
      expect(await tensors.get(`model.layers.0.${name}_layernorm.weight`)!.readRows(0, 3)).toEqual(
        Float32Array.of(0, 1, 2),
      );
    }
  });

  it("keeps Phi-3's fused projections under Hugging Face's names", async () => {
    const stored = [f32Tensor("blk.0.attn_qkv.weight", [32, 16]), f32Tensor("blk.0.ffn_up.weight", [48, 16])];
    const { tensors } = await open(modelEntries("phi3"), [EMBEDDING, ...stored]);
    expect(tensors.get("model.layers.0.self_attn.qkv_proj.weight")!.shape).toEqual([32, 16]);
    expect(tensors.get("model.layers.0.mlp.gate_up_proj.weight")!.shape).toEqual([48, 16]);
  });

  it("finds them at the alignment that the file names", async () => {
    const entries = modelEntries("llama", [["general.alignment", U32, 128]]);
    const bytes = writeGguf(entries, [EMBEDDING, f32Tensor("output_norm.weight", [16])], 3, 128);
    const { tensors } = await openSingle(bufferSource(bytes, "model.gguf"));
    expect(await tensors.get("model.norm.weight")!.readRows(0, 3)).toEqual(Float32Array.of(1, 2, 3));
  });

  it("reads parts of a quantized vector", async () => {
    const data = Uint8Array.from({ length: 68 }, (_, i) => (i % 34 === 0 ? 0 : i % 34 === 1 ? 0x3c : i));
    const vector = { name: "output_norm.weight", shape: [64], type: 8, data };
    const { tensors } = await open(modelEntries("llama"), [EMBEDDING, vector]);
    const norm = tensors.get("model.norm.weight")!;
    const all = await norm.readRows(0, 64);
    expect(await norm.readRows(5, 37)).toEqual(all.slice(5, 37));
  });
});

describe("configuration", () => {
  it("tells the common settings", async () => {
    const { config } = await open(modelEntries("llama", [["tokenizer.ggml.eos_token_id", U32, 3]]));
    expect(config).toMatchObject({
      architectures: ["LlamaForCausalLM"],
      model_type: "llama",
      hidden_size: 16,
      head_dim: 4,
      vocab_size: 5,
      rms_norm_eps: 1e-5,
      tie_word_embeddings: true,
      eos_token_id: 3,
    });
    expect(config.rope_scaling).toBeUndefined();
  });

  it("recognizes Llama 3's frequency factors, and passes others on", async () => {
    const rule = [1, 1, 1.5, 8].map((_, i) => llama3Factor(i, 8));
    const llama3 = await open(modelEntries("llama", [["llama.attention.key_length", U32, 8]]), [
      EMBEDDING,
      f32Tensor("rope_freqs.weight", [4], rule),
    ]);
    expect(llama3.config.rope_scaling).toEqual({
      rope_type: "llama3",
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 64,
    });
    const others = await open(modelEntries("llama"), [
      EMBEDDING,
      f32Tensor("rope_freqs.weight", [2], [1, 2.5]),
    ]);
    expect(others.config.rope_scaling).toEqual({ rope_type: "gguf_factors", factors: [1, 2.5] });
    expect(others.tensors.has("rope_freqs.weight")).toBe(true);
  });

  it.each([
    ["linear", { rope_type: "linear", factor: 4 }],
    ["yarn", { rope_type: "yarn", factor: 4, original_max_position_embeddings: 16 }],
    ["none", undefined],
  ])("scaling of type %s", async (type, wanted) => {
    const { config } = await open(
      modelEntries("qwen2", [
        ["qwen2.rope.scaling.type", STRING, type],
        ["qwen2.rope.scaling.factor", F32, 4],
        ["qwen2.rope.scaling.original_context_length", U32, 16],
      ]),
    );
    expect(config.rope_scaling).toEqual(wanted);
  });

  it("tells longrope's factors", async () => {
    const { config } = await open(
      modelEntries("phi3", [
        ["phi3.rope.scaling.original_context_length", U32, 16],
        ["phi3.rope.scaling.attn_factor", F32, 1.25],
      ]),
      [
        EMBEDDING,
        f32Tensor("rope_factors_long.weight", [2], [2, 3]),
        f32Tensor("rope_factors_short.weight", [2], [1, 1]),
      ],
    );
    expect(config.rope_scaling).toMatchObject({
      rope_type: "longrope",
      long_factor: [2, 3],
      short_factor: [1, 1],
      original_max_position_embeddings: 16,
      attention_factor: 1.25,
    });
    expect(config.original_max_position_embeddings).toBe(16);
  });

  it("scales Gemma's queries by the head size, those of 27B by hidden / heads", async () => {
    const wide = ["gemma2.attention.key_length", U32, 32] as Entry;
    const small = await open(modelEntries("gemma2", [wide]));
    expect(small.config).toMatchObject({ query_pre_attn_scalar: 32, hidden_activation: "gelu_pytorch_tanh" });
    const large = await open(modelEntries("gemma2", [wide, ["gemma2.block_count", U32, 46]]));
    expect(large.config).toMatchObject({ query_pre_attn_scalar: 4 });
    expect((large.config.layer_types as string[]).slice(0, 2)).toEqual([
      "sliding_attention",
      "full_attention",
    ]);
  });

  it("names an unknown architecture and keeps its tensors' names", async () => {
    const { config, tensors } = await open([["general.architecture", STRING, "rwkv7"]]);
    expect(config).toEqual({ model_type: "rwkv7" });
    expect([...tensors.keys()]).toEqual(["token_embd.weight"]);
  });
});

describe("split models", () => {
  const part = (no: number, count: number, entries: Entry[], tensors: TensorEntry[]) =>
    writeGguf(
      [...entries, ["split.no", U32, no], ["split.count", U32, count], ["split.tensors.count", U32, 2]],
      tensors,
    );
  const first = part(0, 2, modelEntries("llama"), [EMBEDDING]);
  const second = part(1, 2, [], [f32Tensor("output.weight", [5, 16])]);

  it("opens siblings by name", async () => {
    const asked: string[] = [];
    const checkpoint = await openGguf(bufferSource(first, "/models/m-00001-of-00002.gguf"), async (name) => {
      asked.push(name);
      return bufferSource(second, name);
    });
    expect(asked).toEqual(["m-00002-of-00002.gguf"]);
    expect(checkpoint.config.tie_word_embeddings).toBe(false);
    expect((await checkpoint.tensors.get("lm_head.weight")!.readRows(1, 2))[0]).toBe(17);
    await checkpoint.close();
  });

  it("refuses a wrong part, a later part, a name without numbers", async () => {
    const sibling = async (name: string) => bufferSource(first, name);
    await expect(openGguf(bufferSource(first, "m-00001-of-00002.gguf"), sibling)).rejects.toThrow(
      "not part 2 of 2",
    );
    await expect(openGguf(bufferSource(second, "m-00002-of-00002.gguf"), sibling)).rejects.toThrow(
      "m-00001-of-00002.gguf",
    );
    await expect(openGguf(bufferSource(first, "m.gguf"), sibling)).rejects.toThrow(CheckpointError);
  });
});

describe("what cannot be read", () => {
  it("names the version, the tensor type, the tokenizer", async () => {
    const bytes = writeGguf(modelEntries("llama"), [], 1);
    await expect(openSingle(bufferSource(bytes, "m.gguf"))).rejects.toThrow(UnsupportedError);
    const odd = { name: "x", shape: [4], type: 40, data: new Uint8Array(4) };
    await expect(open(modelEntries("llama"), [odd])).rejects.toThrow(/type 40.*Q4_K/);
    const tokenizer: Entry[] = [
      ["tokenizer.ggml.model", STRING, "rwkv"],
      ["tokenizer.ggml.tokens", ARRAY, [STRING, ["a"]]],
    ];
    await expect(open(modelEntries("llama", tokenizer))).rejects.toThrow(/"rwkv".*supported/);
  });
});

function llama3Factor(pair: number, headSize: number): number {
  const wavelength = 2 * Math.PI * 10000 ** ((2 * pair) / headSize);
  const smooth = Math.min(1, Math.max(0, (64 / wavelength - 1) / 3));
  return 1 / ((1 - smooth) / 8 + smooth);
}
