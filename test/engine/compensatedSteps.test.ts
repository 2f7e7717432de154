import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { type ChannelShares, SELECTIONS, uniformShares } from "../../src/compensation/settings.ts";
import type { CompensationOptions, Model } from "../../src/engine/model.ts";
import { profileInputs } from "../../src/engine/profile.ts";
import { quantizeCheckpoint } from "../../src/engine/quantize/quantize.node.ts";
import type { Reading } from "../../src/engine/reading.ts";
import { load } from "../../src/node.ts";
import { RESIDUAL_BITS } from "../../src/quantizers/residual.ts";
import { relativeError } from "../relativeError.ts";

const ids = Array.from({ length: 5 }, (_, i) => (i * 31 + 5) % 96);
const backwards = ids.toReversed();

/** Of 32 and 48 input channels: one, all, and as many as can be different for the kinds of layers. */
const shares: Record<string, ChannelShares> = {
  mixed: { qkv: 100, o: 0, gateUp: 1024, down: 300 },
  one: uniformShares(16),
  all: uniformShares(1024),
};

/** Logits of the prompt, [tokens, vocabulary], so many tokens a step. */
async function inSteps({ runner }: Model, reading: Reading, size: number): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for (let at = 0; at < ids.length; at += size) {
    const part = ids.slice(at, at + size);
    parts.push(await runner.step({ ids: part, positions: part.map((_, i) => at + i) }, "all", reading));
  }
  return Float32Array.from(parts.flatMap((part) => [...part]));
}

/** The same with another sequence beside it, a token of each a step. */
async function besideAnother({ runner, spec }: Model, reading: Reading): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for (const [i, id] of ids.entries()) {
    const input = { ids: [backwards[i], id], positions: [i, i], sequences: [1, 0] };
    parts.push((await runner.step(input, "all", reading)).subarray(spec.vocabularySize));
  }
  return Float32Array.from(parts.flatMap((part) => [...part]));
}

describe.each(RESIDUAL_BITS)("a residual of %i bits", (bits) => {
  const folder = mkdtempSync(join(tmpdir(), "halftone-steps-"));
  const opened: Model[] = [];
  let [reference, memory, memoryThreads, file, fileThreads]: Model[] = [];

  beforeAll(async () => {
    const checkpoint = await openCheckpoint("test/fixtures/models/llama3-v5");
    const run = { scheme: "nuq-2", embeddingScheme: "f32", residual: bits, balance: false, threads: 1 };
    await quantizeCheckpoint(checkpoint, join(folder, "model"), run);
    await checkpoint.close();
    const open = async (
      compensation: CompensationOptions,
      options: { threads?: number; backend?: "reference" } = {},
    ) => {
      const given = { compensation, activations: "float", floats: "f32", sequences: 2, threads: 1 } as const;
      const model = await load(join(folder, "model"), { ...given, ...options });
      opened.push(model);
      await profileInputs(model, backwards);
      return model;
    };
    reference = await open({}, { backend: "reference" });
    memory = await open({});
    memoryThreads = await open({}, { threads: 2 });
    file = await open({ store: "file" });
    fileThreads = await open({ store: "file" }, { threads: 2 });
  });
  afterAll(() => {
    for (const model of opened) model.dispose();
    rmSync(folder, { recursive: true });
  });

  // The other widths differ in the products with the rows alone.
  const counts = Object.entries(shares).slice(0, bits === 4 ? 3 : 1);
  const cases = SELECTIONS.flatMap((select) =>
    counts.map(([name, channels]) => ({ name, select, channels })),
  );
  it.each(cases)(
    "$name by $select: the same on any threads, from anywhere, in any steps",
    async (settings) => {
      const { select, channels } = settings;
      for (const activations of ["float", "int8"] as const) {
        const reading = { activations, compensation: { select, channels } };
        const oneReads = { activations, compensation: { select, channels, readers: 1 } };
        const whole = await inSteps(memory, reading, ids.length);
        expect(await inSteps(memory, reading, 1)).toEqual(whole);
        expect(await inSteps(memoryThreads, reading, 4)).toEqual(whole);
        expect(await inSteps(file, reading, ids.length)).toEqual(whole);
        expect(await besideAnother(file, reading)).toEqual(whole);
        expect(await inSteps(fileThreads, reading, 4)).toEqual(whole);
        expect(await inSteps(fileThreads, oneReads, 4)).toEqual(whole);
        // Another rounding draws others at random, and counts more than 8 bits allow.
        if (select === "random" || activations === "int8") continue;
        expect(relativeError(await inSteps(reference, reading, ids.length), whole)).toBeLessThan(1e-4);
      }
    },
  );

  it("adds nothing without channels, and something with one", async () => {
    for (const activations of ["float", "int8"] as const) {
      const plain = await inSteps(memory, { activations }, ids.length);
      for (const select of SELECTIONS) {
        const none = { activations, compensation: { select, channels: uniformShares(0) } };
        expect(await inSteps(fileThreads, none, 4)).toEqual(plain);
        const one = { activations, compensation: { select, channels: shares.one } };
        expect(await inSteps(memory, one, ids.length)).not.toEqual(plain);
      }
    }
  });
});
