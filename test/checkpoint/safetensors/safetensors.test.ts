import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { bytesOf, DTYPE_BYTES, type Dtype } from "../../../src/checkpoint/dtype.ts";
import { folderFiles, openFile } from "../../../src/checkpoint/node.ts";
import { buildHeader, type TensorEntry } from "../../../src/checkpoint/safetensors/header.ts";
import { openModelSafetensors, openSafetensors } from "../../../src/checkpoint/safetensors/reader.ts";
import {
  createModelSafetensors,
  createSafetensors,
} from "../../../src/checkpoint/safetensors/writer.node.ts";
import { CheckpointError } from "../../../src/errors.ts";
import { temporaryFolder } from "../temporary.ts";
import { writeSafetensors } from "./writeSafetensors.ts";

const entry = fc.record({
  dtype: fc.constantFrom(...(Object.keys(DTYPE_BYTES) as Dtype[])),
  shape: fc.array(fc.nat(5), { maxLength: 3 }),
});
const entries = fc
  .uniqueArray(fc.tuple(fc.string({ unit: "grapheme" }), entry), { selector: ([name]) => name, maxLength: 6 })
  .map((pairs) =>
    pairs.filter(([name]) => name !== "__metadata__").map(([name, rest]): TensorEntry => ({ name, ...rest })),
  );

const patternOf = (name: string, length: number) =>
  Uint8Array.from({ length }, (_, i) => (i * 7 + name.length) & 255);

test("what is written is read back, and the bytes are the same each time", async () => {
  const folder = temporaryFolder();
  await fc.assert(
    fc.asyncProperty(
      entries,
      fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
      async (list, metadata) => {
        const path = join(folder, "a.safetensors");
        const produce = ({ name, dtype, shape }: TensorEntry) =>
          patternOf(
            name,
            shape.reduce((n, size) => n * size, DTYPE_BYTES[dtype] as number),
          );
        await writeSafetensors(path, list, produce, metadata);
        const first = readFileSync(path);
        await writeSafetensors(path, list, produce, metadata);
        expect(readFileSync(path).equals(first)).toBe(true);
        const file = await openSafetensors(await openFile(path));
        expect(file.metadata).toEqual(metadata);
        expect([...file.tensors.keys()].sort()).toEqual(list.map(({ name }) => name).sort());
        for (const { name, dtype, shape } of list) {
          const tensor = file.tensors.get(name)!;
          expect([tensor.encoding, tensor.shape]).toEqual([dtype, shape]);
          expect(await tensor.readBytes!()).toEqual(patternOf(name, tensor.byteLength));
        }
        await file.close();
      },
    ),
    { numRuns: 50 },
  );
});

test("tensors are aligned to their elements", () => {
  const list: TensorEntry[] = [
    { name: "codes", dtype: "U8", shape: [3] },
    { name: "scales", dtype: "F32", shape: [1] },
    { name: "half", dtype: "F16", shape: [5] },
  ];
  for (const { offset, dtype } of buildHeader(list).entries) expect(offset % DTYPE_BYTES[dtype]).toBe(0);
});

test("rows are read alone, also into shared memory", async () => {
  const path = join(temporaryFolder(), "a.safetensors");
  const values = Float32Array.from({ length: 12 }, (_, i) => i);
  await writeSafetensors(path, [{ name: "w", dtype: "F32", shape: [4, 3] }], () => bytesOf(values));
  const { tensors, close } = await openSafetensors(await openFile(path));
  const shared = new Float32Array(new SharedArrayBuffer(40));
  const rows = await tensors.get("w")!.readRows(1, 3, shared);
  expect([...rows]).toEqual([3, 4, 5, 6, 7, 8]);
  expect(rows.buffer).toBe(shared.buffer);
  await expect(tensors.get("w")!.readRows(3, 5)).rejects.toThrow("rows [3, 5) of a tensor of 4 rows");
  await close();
});

test("a model above the limit is written as shards with an index", async () => {
  const folder = temporaryFolder();
  const list: TensorEntry[] = ["a", "b", "c"].map((name) => ({ name, dtype: "U8", shape: [10] }));
  const writer = await createModelSafetensors(folder, list, { maxShardBytes: 20 });
  for (const name of ["c", "a", "b"]) {
    await writer.write(name, patternOf(name, 4), 0);
    await writer.write(name, patternOf(name, 10).subarray(4), 4);
  }
  await writer.finish();
  expect(readdirSync(folder).sort()).toEqual([
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
  ]);
  const model = await openModelSafetensors(folderFiles(folder));
  for (const { name } of list)
    expect(await model!.tensors.get(name)!.readBytes!()).toEqual(patternOf(name, 10));
  await model!.close();
});

test("an unfinished file leaves nothing", async () => {
  const folder = temporaryFolder();
  const writer = await createSafetensors(join(folder, "a.safetensors"), [
    { name: "a", dtype: "U8", shape: [4] },
  ]);
  await expect(writer.write("a", new Uint8Array(5))).rejects.toThrow(RangeError);
  await expect(writer.finish()).rejects.toThrow("4 bytes of a were never written");
  const aborted = await createSafetensors(join(folder, "b.safetensors"), [
    { name: "a", dtype: "U8", shape: [4] },
  ]);
  await aborted.write("a", new Uint8Array(4));
  await aborted.abort();
  expect(readdirSync(folder)).toEqual([]);
});

/** A file with this header and so many bytes of data. */
function fileOf(header: unknown, dataBytes = 8): Uint8Array {
  const json = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

const a = { dtype: "F32", shape: [2], data_offsets: [0, 8] };
test.each([
  ["a hole", { a: { ...a, data_offsets: [4, 12] } }, 12, "hole"],
  ["overlap", { a, b: { ...a, data_offsets: [4, 12] } }, 12, "overlaps"],
  ["data beyond the file", { a: { ...a, shape: [2 ** 29], data_offsets: [0, 2 ** 31] } }, 8, "end at byte"],
  ["trailing data", { a }, 9, "end at byte"],
  ["an overflowing shape", { a: { ...a, shape: [2 ** 40, 2 ** 40] } }, 8, "does not fill"],
  ["a negative size", { a: { ...a, shape: [-2] } }, 8, "shape"],
  ["a reversed range", { a: { ...a, data_offsets: [8, 0] } }, 8, "data_offsets"],
  ["an unknown dtype", { a: { ...a, dtype: "F31" } }, 8, "unknown dtype"],
  ["an inherited dtype", { a: { ...a, dtype: "toString" } }, 8, "unknown dtype"],
  ["metadata of numbers", { __metadata__: { a: 1 } }, 0, "map of strings"],
  ["an array", [a], 8, "does not start with {"],
  ["broken JSON", '{"a":', 8, "broken JSON"],
  ["an entry that is no object", { a: 7 }, 0, "no object"],
])("%s is refused", async (_, header, dataBytes, message) => {
  const opening = openSafetensors(bufferSource(fileOf(header, dataBytes), "f"));
  await expect(opening).rejects.toThrow(CheckpointError);
  await expect(opening).rejects.toThrow(message);
});

test("a header longer than the file is refused before it is read", async () => {
  const bytes = fileOf({ a });
  new DataView(bytes.buffer).setBigUint64(0, 2n ** 31n, true);
  await expect(openSafetensors(bufferSource(bytes, "f"))).rejects.toThrow(
    "claims a header of 2147483648 bytes",
  );
});

test("text that is not UTF-8 is refused", async () => {
  const bytes = fileOf({ abc: a });
  bytes[11] = 0xff;
  await expect(openSafetensors(bufferSource(bytes, "f"))).rejects.toThrow("not UTF-8");
});
