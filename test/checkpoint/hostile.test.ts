import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bufferSource } from "../../src/checkpoint/byteSource.ts";
import type { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { openHuggingFace } from "../../src/checkpoint/huggingface/folder.ts";
import { openLlama2c } from "../../src/checkpoint/llama2c/open.ts";
import { openOnnx } from "../../src/checkpoint/onnx/open.ts";
import { buildHeader } from "../../src/checkpoint/safetensors/header.ts";
import { HalftoneError } from "../../src/errors.ts";
import { concatenate, llama2cFile, tokenizerFile } from "./llama2c/file.ts";
import { memoryFiles } from "./memoryFiles.ts";

const fixture = (path: string) => new Uint8Array(readFileSync(`test/checkpoint/onnx/fixtures/${path}`));
const config = fixture("int8/config.json");
const header = buildHeader([
  { name: "a.weight", dtype: "F32", shape: [2, 3] },
  { name: "b", dtype: "U8", shape: [5] },
]);
const safetensors = concatenate(header.bytes, new Uint8Array(29));

const readers: Record<string, { bytes: Uint8Array; open: (bytes: Uint8Array) => Promise<Checkpoint> }> = {
  safetensors: {
    bytes: safetensors,
    open: (bytes) => openHuggingFace(memoryFiles({ "config.json": config, "model.safetensors": bytes })),
  },
  "ONNX integers": {
    bytes: fixture("int8/onnx/model.onnx"),
    open: (bytes) => openOnnx(memoryFiles({ "config.json": config, m: bytes }), "m"),
  },
  "ONNX blocks": {
    bytes: fixture("q4/onnx/model.onnx"),
    open: (bytes) => openOnnx(memoryFiles({ "config.json": config, m: bytes }), "m"),
  },
  "llama2.c": {
    bytes: concatenate(llama2cFile(true), tokenizerFile()),
    open: (bytes) => openLlama2c(bufferSource(bytes, "m")),
  },
  "config.json": {
    bytes: config,
    open: (bytes) => openOnnx(memoryFiles({ "config.json": bytes, m: fixture("fp16/onnx/model.onnx") }), "m"),
  },
};

/** Opens and reads everything; only errors of ours may come out, and never a tensor larger than its file allows. */
async function survive(open: (bytes: Uint8Array) => Promise<Checkpoint>, bytes: Uint8Array): Promise<void> {
  try {
    const { tensors } = await open(bytes);
    for (const tensor of tensors.values()) {
      const count = tensor.shape.reduce((n, size) => n * size, 1);
      expect(count).toBeLessThanOrEqual(4 * bytes.length + 2 ** 20);
      await tensor.readRows(0, tensor.shape.length === 0 ? 1 : tensor.shape[0]);
    }
  } catch (error) {
    if (!(error instanceof HalftoneError)) throw error;
  }
}

describe.each(Object.entries(readers))("%s", (_, { bytes, open }) => {
  test("opens when it is whole", async () => {
    const { tensors } = await open(bytes);
    expect(tensors.size).toBeGreaterThan(0);
    for (const tensor of tensors.values()) await tensor.readRows(0, tensor.shape[0]);
  });

  test("survives truncation", async () => {
    const step = Math.max(1, Math.floor(bytes.length / 150));
    for (let length = 0; length < bytes.length; length += step) await survive(open, bytes.slice(0, length));
  });

  test("survives altered bytes", async () => {
    const change = fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 }));
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
        const altered = bytes.slice();
        for (const [at, value] of changes) altered[at] = value;
        await survive(open, altered);
      }),
      { numRuns: 120 },
    );
  });

  test("survives bytes taken out or put in", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length - 1),
        fc.nat(8),
        fc.uint8Array({ maxLength: 8 }),
        async (at, cut, put) => {
          await survive(open, concatenate(bytes.subarray(0, at), put, bytes.subarray(at + cut)));
        },
      ),
      { numRuns: 80 },
    );
  });
});

test("every prefix of a safetensors file is an error", async () => {
  for (let length = 0; length < safetensors.length; length++) {
    await expect(readers.safetensors.open(safetensors.slice(0, length))).rejects.toThrow(HalftoneError);
  }
});
