import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bufferSource } from "../../src/checkpoint/byteSource.ts";
import { openHuggingFace } from "../../src/checkpoint/huggingface/folder.ts";
import { openLlama2c } from "../../src/checkpoint/llama2c/open.ts";
import { openOnnx } from "../../src/checkpoint/onnx/open.ts";
import { HalftoneError } from "../../src/errors.ts";
import { openSingle } from "./gguf/openSingle.ts";
import { ARRAY, type Entry, f32Tensor, modelEntries, STRING, U32, writeGguf } from "./gguf/writeGguf.ts";
import { concatenate } from "./llama2c/file.ts";
import { memoryFiles } from "./memoryFiles.ts";
import { field } from "./onnx/writeOnnx.ts";

const config = new Uint8Array(readFileSync("test/checkpoint/onnx/fixtures/int8/config.json"));
const text = (value: string) => new TextEncoder().encode(value);
const MILLION = 1_000_000;

/** `pattern`, `times` times. */
function repeated(pattern: readonly number[], times: number): Uint8Array {
  return new Uint8Array(pattern.length * times).map((_, i) => pattern[i % pattern.length]);
}

const inNode = (bytes: Uint8Array) => field(7, field(1, bytes));
const onnx = (bytes: Uint8Array) => openOnnx(memoryFiles({ "config.json": config, m: bytes }), "m");
const gguf = (bytes: Uint8Array) => openSingle(bufferSource(bytes, "m.gguf"));
const safetensors = (bytes: Uint8Array) =>
  openHuggingFace(memoryFiles({ "config.json": config, "model.safetensors": bytes }));
const folder = (bytes: Uint8Array) => openHuggingFace(memoryFiles({ "config.json": bytes }));

function withHeader(header: string, claimed = header.length): Uint8Array {
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(claimed), true);
  return concatenate(length, text(header));
}

/** A GGUF file whose metadata ends in an array of `count` elements of `type`, given as raw bytes. */
function withArray(type: number, count: number, elements: Uint8Array): Uint8Array {
  const head = writeGguf(modelEntries("llama", [["tokenizer.ggml.tokens", ARRAY, [type, []]] as Entry]));
  const key = text("tokenizer.ggml.tokens");
  const at = head.findIndex((_, i) => key.every((byte, k) => head[i + k] === byte)) + key.length;
  const start = head.slice(0, at + 4 + 4);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(count), true);
  return concatenate(start, length, elements);
}

const cases: Record<string, [open: (bytes: Uint8Array) => Promise<unknown>, bytes: () => Uint8Array]> = {
  "ONNX of millions of empty nodes": [onnx, () => field(7, repeated([0x0a, 0], 2 * MILLION))],
  "ONNX of millions of empty initializers": [onnx, () => field(7, repeated([0x2a, 0], 2 * MILLION))],
  "ONNX of millions of unknown fields": [onnx, () => field(7, repeated([0x78, 1], 2 * MILLION))],
  "ONNX of millions of fields beside the graph": [onnx, () => repeated([0x08, 1], 2 * MILLION)],
  "an ONNX node of millions of inputs": [onnx, () => inNode(repeated([0x0a, 0], 2 * MILLION))],
  "an ONNX node of millions of attributes": [onnx, () => inNode(repeated([0x2a, 0], 2 * MILLION))],
  "an ONNX attribute of millions of numbers": [
    onnx,
    () => inNode(field(5, field(8, repeated([1], 4 * MILLION)))),
  ],
  "ONNX branches of millions of nodes": [
    onnx,
    () => inNode(field(5, field(6, repeated([0x0a, 0], 2 * MILLION)))),
  ],
  "an ONNX initializer of millions of dimensions": [
    onnx,
    () => field(7, field(5, repeated([0x08, 1], 2 * MILLION))),
  ],
  "GGUF of a million empty tokens": [gguf, () => withArray(STRING, MILLION, new Uint8Array(8 * MILLION))],
  "GGUF of a million empty arrays": [
    gguf,
    () => withArray(ARRAY, MILLION, repeated([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], MILLION)),
  ],
  "GGUF of 2^31 tokens": [gguf, () => withArray(U32, 2 ** 31, new Uint8Array(64))],
  "GGUF with a tensor of 2 GB": [
    gguf,
    () => writeGguf(modelEntries("llama"), [{ ...f32Tensor("big", []), shape: [2 ** 15, 2 ** 14] }]),
  ],
  "a safetensors header of half a million lists": [
    safetensors,
    () => withHeader(`{"a":[${"[],".repeat(MILLION / 2)}[]]}`),
  ],
  "a safetensors header of five million lists": [
    safetensors,
    () => withHeader(`{"a":[${"[],".repeat(5 * MILLION)}[]]}`),
  ],
  "a config of ten million numbers": [folder, () => text(`{"a":[${"0,".repeat(10 * MILLION)}0]}`)],
  "a config of a million lists": [folder, () => text(`{"a":[${"[],".repeat(MILLION)}0]}`)],
  "a safetensors header of 2 GB": [safetensors, () => withHeader("{}", 2 ** 31)],
  "a safetensors header nested a million deep": [
    safetensors,
    () => withHeader(`{"a":${"[".repeat(MILLION)}`),
  ],
  "a config nested a million deep": [folder, () => text("[".repeat(MILLION))],
  "a config that is not UTF-8": [folder, () => repeated([0x7b, 0xff], MILLION)],
  "a llama2.c file that claims 2^31 layers": [
    (bytes) => openLlama2c(bufferSource(bytes, "m.bin")),
    () =>
      new Uint8Array(Int32Array.of(64, 64, 2 ** 31 - 1, 4, 4, 1000, 64, ...new Array(200).fill(0)).buffer),
  ],
};

/** CPU time, so that a busy machine does not matter. */
test.each(Object.entries(cases))("%s ends soon in an error, in little memory", async (_, [open, make]) => {
  const bytes = make();
  const held = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const [before, started] = [held(), process.cpuUsage()];
  const error = await open(bytes).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  const { user, system } = process.cpuUsage(started);
  const grown = held() - before;
  expect(error).toBeInstanceOf(HalftoneError);
  expect.soft((error as Error).message.length).toBeLessThan(1000);
  expect.soft((user + system) / 1e6).toBeLessThan(1);
  expect.soft(grown).toBeLessThan(bytes.length + 64 * 2 ** 20);
});
