import { Tokenizer } from "@huggingface/tokenizers";
import { describe, expect, test } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { openLlama2c } from "../../../src/checkpoint/llama2c/open.ts";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { CheckpointError } from "../../../src/errors.ts";
import { testData } from "../../testData.ts";
import { concatenate, llama2cFile, small, tokenizerFile } from "./file.ts";

const open = (bytes: Uint8Array) => openLlama2c(bufferSource(bytes, "m.bin"));

test("tensors come in file order, rotary rows in Hugging Face's halves", async () => {
  const { tensors, config } = await open(llama2cFile(true));
  expect(config).toMatchObject({
    hidden_size: 8,
    num_key_value_heads: 1,
    tie_word_embeddings: true,
    vocab_size: 262,
  });
  expect(tensors.size).toBe(2 * 9 + 2);
  const firstOf = async (name: string, row = 0) => (await tensors.get(name)!.readRows(row, row + 1))[0];
  const embedding = small.vocabulary * 8;
  expect(await firstOf("model.embed_tokens.weight", 3)).toBe(24);
  expect(await firstOf("model.layers.1.input_layernorm.weight")).toBe(embedding + 8);
  const q = embedding + 16;
  expect(tensors.get("model.layers.0.self_attn.q_proj.weight")!.shape).toEqual([8, 8]);
  const rows = await tensors.get("model.layers.0.self_attn.q_proj.weight")!.readRows(0, 8);
  const order = [0, 2, 1, 3, 4, 6, 5, 7];
  expect(Array.from({ length: 8 }, (_, row) => rows[8 * row])).toEqual(order.map((row) => q + 8 * row));
  expect(await firstOf("model.layers.0.self_attn.q_proj.weight", 5)).toBe(q + 8 * 6);
  expect(tensors.get("model.layers.1.self_attn.k_proj.weight")!.shape).toEqual([4, 8]);
  expect(await firstOf("model.layers.0.mlp.down_proj.weight", 1)).toBe(
    (await firstOf("model.layers.0.mlp.gate_proj.weight")) + 2 * 48 + 6,
  );
});

test("a negative vocabulary announces a head after the angle tables", async () => {
  const bytes = llama2cFile(false);
  const { tensors, config } = await open(bytes);
  expect(config.tie_word_embeddings).toBe(false);
  const head = await tensors.get("lm_head.weight")!.readRows(261, 262);
  expect(head[7]).toBe((bytes.length - 28) / 4 - 1);
});

test("a tokenizer that follows is converted", async () => {
  const { tokenizer } = await open(concatenate(llama2cFile(true), tokenizerFile()));
  const encode = (text: string) => new Tokenizer(tokenizer!.tokenizer, tokenizer!.config).encode(text).ids;
  expect(encode("a a")).toEqual([1, 259, 259]);
  expect(encode("b")).toEqual([1, 260, 3 + 98]);
});

test("a damaged header or tokenizer is refused with its place", async () => {
  await expect(open(llama2cFile(true).subarray(0, -4))).rejects.toThrow(CheckpointError);
  const trailing = concatenate(llama2cFile(true), tokenizerFile().subarray(0, -1));
  await expect(open(trailing)).rejects.toThrow(/m\.bin at byte \d+: no llama2\.c tokenizer/);
});

const stories = testData("models/llama2.data");
describe.skipIf(!stories)("stories15M", () => {
  test("tokenizes as Llama", async () => {
    const { tokenizer, tensors, close } = await openCheckpoint(stories!);
    expect(tensors.size).toBe(6 * 9 + 2);
    const hf = new Tokenizer(tokenizer!.tokenizer, tokenizer!.config);
    expect(hf.encode("Once upon a time").ids).toEqual([1, 9038, 2501, 263, 931]);
    expect(hf.encode("🎉 hi").ids).toEqual([1, 29871, 243, 162, 145, 140, 7251]);
    await close();
  });
});
