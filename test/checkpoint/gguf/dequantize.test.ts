import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { GGUF_TYPES } from "../../../src/checkpoint/gguf/types.ts";
import { openSafetensors } from "../../../src/checkpoint/safetensors/reader.ts";

/** Written by tools/fixtures/gguf-dequantize.py. */
const { tensors: golden } = await openSafetensors(
  bufferSource(new Uint8Array(readFileSync(new URL("./dequantize.safetensors", import.meta.url))), "golden"),
);

describe("dequantizers against gguf.quants, bit for bit", () => {
  it.each([...GGUF_TYPES.values()])("$name", async (type) => {
    const bytes = await golden.get(`${type.name}.bytes`)!.readBytes!();
    const wanted = await golden.get(`${type.name}.values`)!.readBytes!();
    const blocks = bytes.length / type.blockBytes;
    expect(wanted.length).toBe(4 * blocks * type.blockSize);

    // Odd offsets on both sides: blocks start anywhere in a file, rows anywhere in a target.
    const padded = new Uint8Array(bytes.length + 3);
    padded.set(bytes, 3);
    const out = new Float32Array(5 + blocks * type.blockSize + 1).fill(7);
    const first = Math.floor(blocks / 2);
    type.dequantize(padded, 3, out, 5, first);
    type.dequantize(padded, 3 + first * type.blockBytes, out, 5 + first * type.blockSize, blocks - first);

    expect([...out.subarray(0, 5)]).toEqual([7, 7, 7, 7, 7]);
    expect(out.at(-1)).toBe(7);
    const found = new Uint8Array(out.buffer, 20, wanted.length);
    expect(Buffer.compare(found, wanted)).toBe(0);
  });
});
