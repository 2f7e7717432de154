import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bufferSource } from "../../src/checkpoint/byteSource.ts";
import type { Checkpoint, Tensor } from "../../src/checkpoint/checkpoint.ts";
import { convertCheckpoint } from "../../src/checkpoint/convert.node.ts";
import { denseTensor } from "../../src/checkpoint/denseTensor.ts";
import { bytesOf, fromFloat32, toFloat32 } from "../../src/checkpoint/dtype.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { UnsupportedError, UsageError } from "../../src/errors.ts";
import { temporaryFolder } from "./temporary.ts";

function checkpointOf(tensors: Record<string, number[]>): Checkpoint {
  const list = Object.entries(tensors).map(([name, values]): [string, Tensor] => {
    const source = bufferSource(bytesOf(Float32Array.from(values)), "memory");
    return [name, denseTensor(name, "F32", [values.length], source, 0)];
  });
  const config = { model_type: "llama", torch_dtype: "float32" };
  const tokenizer = { tokenizer: { version: "1.0" }, config: { bos_token: "<s>" }, chatTemplate: "T" };
  return {
    source: "memory",
    format: "gguf",
    config,
    generationConfig: { eos_token_id: 2 },
    tensors: new Map(list),
    tokenizer,
    close: async () => {},
  };
}

test.each(["f32", "f16", "bf16"] as const)("an ONNX model becomes a folder of %s", async (dtype) => {
  const folder = join(temporaryFolder(), "out");
  const onnx = await openCheckpoint("test/checkpoint/onnx/fixtures/int8");
  await convertCheckpoint(onnx, folder, { dtype, maxShardBytes: 9000 });
  const back = await openCheckpoint(folder);
  expect([...back.tensors.keys()].sort()).toEqual([...onnx.tensors.keys()].sort());
  for (const [name, tensor] of onnx.tensors) {
    const values = await tensor.readRows(0, tensor.shape[0]);
    const stored = dtype.toUpperCase() as "F32";
    const rounded = new Float32Array(values.length);
    toFloat32(stored, fromFloat32(stored, values), rounded);
    expect(back.tensors.get(name)?.encoding).toBe(stored);
    expect(await back.tensors.get(name)!.readRows(0, tensor.shape[0])).toEqual(rounded);
  }
  expect(back.config.dtype).toBe({ f32: "float32", f16: "float16", bf16: "bfloat16" }[dtype]);
  await back.close();
  await onnx.close();
});

test("the tokenizer and the generation config come along", async () => {
  const folder = join(temporaryFolder(), "out");
  const checkpoint = checkpointOf({ w: [1, 2] });
  await convertCheckpoint(checkpoint, folder, { dtype: "bf16" });
  const back = await openCheckpoint(folder);
  expect(back.tokenizer).toEqual(checkpoint.tokenizer);
  expect(back.generationConfig).toEqual(checkpoint.generationConfig);
  expect(back.config).toMatchObject({ torch_dtype: "bfloat16", dtype: "bfloat16" });
  await back.close();
});

test("names never leave the folder", async () => {
  const parent = temporaryFolder();
  const names = ["../evil", "/etc/evil", "a/b/c", "__proto__", "nul\u0000", "C:\\evil"];
  await convertCheckpoint(
    checkpointOf(Object.fromEntries(names.map((name) => [name, [1]]))),
    join(parent, "out"),
    {
      dtype: "f32",
      maxShardBytes: 4,
    },
  );
  expect(readdirSync(parent)).toEqual(["out"]);
  expect(readdirSync(join(parent, "out")).filter((name) => !/^[\w.-]+$/.test(name))).toEqual([]);
});

test("a value too large for f16 is refused, and leaves nothing", async () => {
  const parent = temporaryFolder();
  const converting = convertCheckpoint(checkpointOf({ w: [1e5] }), join(parent, "out"), { dtype: "f16" });
  await expect(converting).rejects.toThrow(UnsupportedError);
  expect(readdirSync(parent)).toEqual([]);
});

test("only an empty folder, or what a crash of ours left, is overwritten", async () => {
  const parent = temporaryFolder();
  const folder = join(parent, "out");
  const convert = () => convertCheckpoint(checkpointOf({ w: [1] }), folder, { dtype: "f32" });
  mkdirSync(folder);
  mkdirSync(`${folder}.partial`);
  writeFileSync(join(`${folder}.partial`, ".halftone-partial"), "999999999");
  writeFileSync(join(`${folder}.partial`, "model.safetensors.partial"), "");
  await convert();
  expect(existsSync(`${folder}.partial`)).toBe(false);
  await expect(convert()).rejects.toThrow(UsageError);
  const other = join(parent, "other");
  mkdirSync(`${other}.partial`);
  writeFileSync(join(`${other}.partial`, "mine"), "kept");
  await expect(convertCheckpoint(checkpointOf({ w: [1] }), other, { dtype: "f32" })).rejects.toThrow(
    "not ours",
  );
  expect(readFileSync(join(`${other}.partial`, "mine"), "utf8")).toBe("kept");
});
