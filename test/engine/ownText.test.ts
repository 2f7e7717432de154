import { expect, it } from "vitest";
import { spawnNodeWorker } from "../../src/backends/wasm/workers.node.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { firstToken, sampleText } from "../../src/engine/ownText.ts";
import { floatDecoder } from "../../src/engine/quantize/plan.ts";
import { MemoryError } from "../../src/errors.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openWasm } from "../../src/ops/wasm.ts";

const checkpoint = await openCheckpoint("test/fixtures/models/gemma2");
const spec = floatDecoder(checkpoint);

async function sampled(sequences: number, threads: number, seed = 0, seen: number[] = []) {
  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  const text = { spec, checkpoint, backend, sequences, sequenceLength: 12, first: 5, seed };
  const onProgress = (done: number, total: number) => seen.push(done / total);
  return sampleText({ ...text, onProgress }).finally(() => backend.dispose());
}

it("is the same however many sequences are drawn side by side, at any thread count", async () => {
  const seen: number[] = [];
  const all = await sampled(37, 3, 0, seen);
  expect(all).toHaveLength(37);
  for (const ids of all) {
    expect(ids).toHaveLength(12);
    expect(ids[0]).toBe(5);
  }
  expect(new Set(all.map(String)).size).toBe(37);
  expect(await sampled(2, 1)).toEqual(all.slice(0, 2));
  expect(await sampled(2, 1, 35)).toEqual(all.slice(35));
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen.at(-1)).toBe(1);
});

it("asks for a text where the model does not fit", async () => {
  const backend = new ReferenceBackend();
  backend.loadLinear = () => {
    throw new MemoryError("out of memory");
  };
  const text = { spec, checkpoint, backend, sequences: 1, sequenceLength: 4, first: 5, seed: 0 };
  await expect(sampleText(text)).rejects.toThrow(/gemma2: too large to make up text.* give a text/);
});

it("begins with token 0 where there is no tokenizer", () => {
  expect(firstToken(checkpoint)).toBe(0);
});
