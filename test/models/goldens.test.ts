import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import type { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { relativeError } from "../relativeError.ts";
import { testData } from "../testData.ts";
import { models } from "./fixture.ts";
import { continueGreedily, load, logitsOf, readGolden } from "./golden.ts";

const TOLERANCE = 1e-4;
const PROMPT = 32;

const backends: Record<string, () => Promise<Backend>> = {
  reference: async () => new ReferenceBackend(),
  wasm: () => openWasm(),
};

const own = readdirSync(models).map((name) => [name, join(models, name)] as const);
const larger = ["llama3", "qwen2", "phi3", "gemma2"].flatMap((name) => {
  const path = testData(`fixtures/${name}`);
  return path === undefined ? [] : [[`larger ${name}`, path] as const];
});
const gguf = testData("fixtures/gguf");

describe.each(Object.entries(backends))("%s", (_, open) => {
  it.each([...own, ...larger])("%s equals transformers", async (_, folder) => {
    const checkpoint = await openCheckpoint(folder);
    const golden = await readGolden(folder);
    const backend = await open();
    const runner = await load(checkpoint, backend);
    const { ids, logits, short, greedy } = golden;

    expect(relativeError(await logitsOf(runner, ids, ids.length), logits)).toBeLessThan(TOLERANCE);
    expect(relativeError(await logitsOf(runner, ids, 1), logits)).toBeLessThan(TOLERANCE);
    expect(relativeError(await logitsOf(runner, ids, 7), logits)).toBeLessThan(TOLERANCE);
    if (short) {
      const some = ids.slice(0, short.length / runner.spec.vocabularySize);
      for (const chunk of [some.length, 1])
        expect(relativeError(await logitsOf(runner, some, chunk), short)).toBeLessThan(TOLERANCE);
    }
    if (existsSync(join(folder, "golden_short.safetensors"))) {
      const few = await readGolden(folder, "golden_short.safetensors");
      for (const chunk of [few.ids.length, 1])
        expect(relativeError(await logitsOf(runner, few.ids, chunk), few.logits)).toBeLessThan(TOLERANCE);
    }
    expect(await continueGreedily(runner, ids.slice(0, PROMPT), greedy.length)).toEqual(greedy);
    backend.dispose();
    await checkpoint.close();
  });
});

/** Largest change of a logit of these tiny models, relative to the largest: measured, at most half of it. */
const cacheErrors = { f16: 5e-3, int8: 0.11 } as const;

describe.each(["f16", "int8"] as const)("a cache of %s", (type) => {
  it.each(own)("of %s changes little, and the same at any step", async (_, folder) => {
    const checkpoint = await openCheckpoint(folder);
    const { ids, logits } = await readGolden(folder);
    const backend = await openWasm();
    const runner = await load(checkpoint, backend, 128, type);
    const whole = await logitsOf(runner, ids, ids.length);
    expect(relativeError(whole, logits)).toBeLessThan(cacheErrors[type]);
    // Entries of a longer sequence lie behind: they are written anew.
    for (const chunk of [1, 7]) expect(await logitsOf(runner, ids, chunk)).toEqual(whole);
    backend.dispose();
    const plain = await load(checkpoint, new ReferenceBackend(), 128, type);
    // An entry may be rounded the other way.
    expect(relativeError(await logitsOf(plain, ids, ids.length), whole)).toBeLessThan(cacheErrors[type]);
    await checkpoint.close();
  });
});

describe("GGUF", () => {
  it.skipIf(!gguf).each([
    ["qwen2-f32.gguf", "../qwen2/golden.safetensors"],
    ["llama-tied-q4_0.gguf", "llama-tied-q4_0.golden.safetensors"],
  ])("%s equals float arithmetic over its weights", async (file, goldenFile) => {
    const checkpoint = await openCheckpoint(join(gguf!, file));
    const { ids, logits, greedy } = await readGolden(gguf!, goldenFile);
    const runner = await load(checkpoint, new ReferenceBackend());
    for (const chunk of [ids.length, 1])
      expect(relativeError(await logitsOf(runner, ids, chunk), logits)).toBeLessThan(TOLERANCE);
    expect(await continueGreedily(runner, ids.slice(0, PROMPT), greedy.length)).toEqual(greedy);
    await checkpoint.close();
  });
});

describe("gemma3 within a multimodal model", () => {
  const folder = join(models, "gemma3");
  const stems = { "language_model.model.": "language_model.", "model.language_model.": "" };

  it.each(Object.entries(stems))("finds the tensors under %s", async (stem, headPrefix) => {
    const text = await openCheckpoint(folder);
    const rename = (name: string) =>
      name.startsWith("model.") ? stem + name.slice("model.".length) : headPrefix + name;
    const { model_type: _, ...config } = text.config;
    const whole: Checkpoint = {
      ...text,
      config: { model_type: "gemma3", text_config: config },
      tensors: new Map([...text.tensors].map(([name, tensor]) => [rename(name), tensor])),
    };
    const { ids, logits } = await readGolden(folder);
    const runner = await load(whole, new ReferenceBackend());
    expect(relativeError(await logitsOf(runner, ids, ids.length), logits)).toBeLessThan(TOLERANCE);
    await text.close();
  });
});
