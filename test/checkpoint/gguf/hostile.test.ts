import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { openGguf } from "../../../src/checkpoint/gguf/open.ts";
import { CheckpointError, HalftoneError } from "../../../src/errors.ts";
import { ARRAY, type Entry, f32Tensor, modelEntries, STRING, U32, writeGguf } from "./writeGguf.ts";

const TOKENIZER: Entry[] = [
  ["tokenizer.ggml.model", STRING, "gpt2"],
  ["tokenizer.ggml.pre", STRING, "qwen2"],
  ["tokenizer.ggml.tokens", ARRAY, [STRING, ["a", "b", "ab", "é", "<s>"]]],
  ["tokenizer.ggml.token_type", ARRAY, [5, [1, 1, 1, 1, 3]]],
  ["tokenizer.ggml.merges", ARRAY, [STRING, ["a b"]]],
  ["tokenizer.ggml.bos_token_id", U32, 4],
];
const EMBEDDING = f32Tensor("token_embd.weight", [5, 16]);
const GOOD = writeGguf(modelEntries("llama", TOKENIZER), [
  EMBEDDING,
  f32Tensor("blk.0.attn_q.weight", [16, 16]),
]);

/** Opens and reads everything; the largest single read or row buffer stays within the file's size. */
async function readAll(bytes: Uint8Array): Promise<void> {
  const checkpoint = await openGguf(bufferSource(bytes, "bad.gguf"), (name) => {
    throw new CheckpointError(name, "no such part");
  });
  for (const tensor of checkpoint.tensors.values()) {
    expect(tensor.byteLength).toBeLessThanOrEqual(bytes.length);
    await tensor.readRows(0, tensor.shape[0] ?? 1);
  }
}

async function expectTyped(bytes: Uint8Array): Promise<void> {
  const error = await readAll(bytes).catch((caught: unknown) => caught);
  if (error !== undefined) expect(error).toBeInstanceOf(HalftoneError);
}

async function expectOffset(bytes: Uint8Array, problem: RegExp): Promise<void> {
  const error = await readAll(bytes).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(CheckpointError);
  expect((error as CheckpointError).message).toMatch(problem);
  expect((error as CheckpointError).offset).toBeTypeOf("number");
}

function patched(offset: number, value: bigint): Uint8Array {
  const bytes = GOOD.slice();
  new DataView(bytes.buffer).setBigUint64(offset, value, true);
  return bytes;
}

describe("damaged and hostile files", () => {
  it("reads the undamaged one", () => readAll(GOOD));

  it("reports a cut at every byte", async () => {
    for (let length = 0; length < GOOD.length; length++) {
      const error = await readAll(GOOD.slice(0, length)).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(CheckpointError);
      expect((error as CheckpointError).offset).toBeTypeOf("number");
    }
  });

  it("survives flipped bits", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(8 * GOOD.length - 1), { minLength: 1, maxLength: 4 }),
        async (bits) => {
          const bytes = GOOD.slice();
          for (const bit of bits) bytes[bit >> 3] ^= 1 << (bit & 7);
          await expectTyped(bytes);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("survives huge numbers anywhere", async () => {
    for (let offset = 0; offset + 8 <= GOOD.length; offset += 3) {
      for (const value of [0n, 2n ** 31n, 2n ** 53n + 1n, 2n ** 64n - 1n])
        await expectTyped(patched(offset, value));
    }
  });

  it("rejects more layers than any model has", async () => {
    for (const architecture of ["gemma2", "gemma3", "smollm3"]) {
      const entries = modelEntries(architecture, [[`${architecture}.block_count`, U32, 2 ** 31 - 1]]);
      await expectOffset(writeGguf(entries, [EMBEDDING]), /block_count/);
    }
  });

  it("rejects counts and lengths that the file cannot hold", async () => {
    await expectOffset(patched(8, 2n ** 40n), /tensor count/);
    await expectOffset(patched(16, 2n ** 63n), /metadata count/);
    await expectOffset(patched(24, 2n ** 31n), /metadata key/);
    const huge = { name: "big", shape: [2 ** 15, 2 ** 14], type: 0, data: new Uint8Array(0) };
    await expectOffset(writeGguf(modelEntries("llama"), [huge]), /ends at byte 2147/);
  });

  it("rejects overlapping, misaligned, duplicate and misshapen tensors", async () => {
    const tensor = f32Tensor("a", [16]);
    const at = (name: string, position: number) => ({ ...tensor, name, position });
    await expectOffset(writeGguf([], [at("a", 0), at("b", 32)]), /overlap/);
    await expectOffset(writeGguf([], [at("a", 1)]), /multiple of 32/);
    await expectOffset(writeGguf([], [at("a", 0), at("a", 64)]), /twice/);
    await expectOffset(writeGguf([], [{ ...tensor, type: 2 }]), /Q4_0 cannot have the shape/);
    await expectOffset(
      writeGguf(modelEntries("llama"), [f32Tensor("blk.0.attn_q.weight", [12, 2])]),
      /4 heads/,
    );
  });

  it("rejects deep nesting and duplicate keys, accepts shallow nesting", async () => {
    const nest = (depth: number): unknown => (depth === 0 ? [U32, [1, 2]] : [ARRAY, [nest(depth - 1)]]);
    await expectOffset(writeGguf([["x", ARRAY, nest(40)]]), /nested/);
    await expectOffset(
      writeGguf([
        ["x", U32, 1],
        ["x", U32, 1],
      ]),
      /twice/,
    );
    await readAll(writeGguf(modelEntries("llama", [["x", ARRAY, nest(2)]]), [EMBEDDING]));
  });

  it("rejects text that is not UTF-8 and unknown metadata types", async () => {
    const bytes = GOOD.slice();
    bytes[32] = 0xff;
    await expectOffset(bytes, /not UTF-8/);
    await expectOffset(writeGguf([["x", 13, [U32, []]]]), /unknown metadata type 13/);
  });

  it("treats names with separators as names, and never opens a part outside the folder", async () => {
    await readAll(writeGguf(modelEntries("llama"), [EMBEDDING, f32Tensor("../../etc/passwd", [1])]));
    const split = writeGguf([
      ["split.no", U32, 0],
      ["split.count", U32, 2],
    ]);
    const asked: string[] = [];
    await openGguf(bufferSource(split, "../up\\to/m-00001-of-00002.gguf"), (name) => {
      asked.push(name);
      throw new CheckpointError(name, "no such part");
    }).catch(() => {});
    expect(asked).toEqual(["m-00002-of-00002.gguf"]);
  });
});
