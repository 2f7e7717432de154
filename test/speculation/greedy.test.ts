import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import type { Runner } from "../../src/engine/runner.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import type { Drafter } from "../../src/speculation/drafter.ts";
import { ngramDrafter } from "../../src/speculation/ngram.ts";
import { adaptivePolicy, fixedPolicy } from "../../src/speculation/policy.ts";
import { readingDrafter } from "../../src/speculation/readingDrafter.ts";
import { Speculator } from "../../src/speculation/speculator.ts";
import { growTogether } from "../../src/speculation/together.ts";
import { loadQuantized } from "../engine/quantizedFixture.ts";
import { promptOf } from "./prompts.ts";

async function grow(...args: Parameters<typeof growTogether>) {
  return (await growTogether(...args)).answers;
}

const COUNT = 60;
const SEQUENCES = 3;
const prompts = Array.from({ length: SEQUENCES }, (_, i) => promptOf(5 + 3 * i, i));

/** Guesses that are never right: every burst is rolled back. */
const wrong: Drafter = {
  name: "wrong",
  stepsPerToken: 0,
  draft: async (sequences, lengths) =>
    sequences.map((_, i) => ({ ids: Array.from({ length: lengths[i] }, (_, at) => (at * 37 + 11) % 96) })),
};

const models = ["llama3-v5", "gemma2", "gemma3-v5", "phi3-partial", "llama-dynamic", "qwen2-window"];
describe.each([
  ...models.map((name) => [name, "f32"] as const),
  ["gemma2", "f16"] as const,
  ["llama3-v5", "int8"] as const,
])("%s, cache %s", (name, cacheType) => {
  let backend: Backend;
  let runner: Runner;
  let expected: (readonly number[])[];
  beforeAll(async () => {
    backend = await openWasm();
    // Twice the sequences: the other half is a cache of the drafts' own.
    runner = await loadQuantized(name, backend, {
      ...{ sequences: 2 * SEQUENCES, chunk: 32, cacheType },
      reading: { activations: "float" },
    });
    expected = [];
    for (const prompt of prompts) {
      expected.push(...(await grow(runner, [prompt], COUNT, new Speculator(runner, fixedPolicy([], 1)))));
    }
  });
  afterAll(() => backend.dispose());

  const drafters: Record<string, () => Drafter[]> = {
    w4a8: () => [readingDrafter("w4a8", runner, { activations: "int8" })],
    w4a4: () => [readingDrafter("w4a4", runner, { activations: "int4" })],
    "w4a4 with a cache of its own": () => [
      readingDrafter("w4a4", runner, { activations: "int4" }, { cacheOffset: SEQUENCES }),
    ],
    ngram: () => [ngramDrafter()],
    "ngram, then w4a4": () => [ngramDrafter(), readingDrafter("w4a4", runner, { activations: "int4" })],
    "wrong guesses": () => [wrong],
  };

  it.each(Object.keys(drafters))(
    "%s: the verifier's own tokens, at any draft length and batch",
    async (kind) => {
      for (const length of [1, 2, 5]) {
        const speculator = new Speculator(runner, fixedPolicy(drafters[kind](), length));
        expect(await grow(runner, prompts, COUNT, speculator), `drafts of ${length}`).toEqual(expected);
        const { drafted, accepted, acceptanceRate, tokensPerVerify } = speculator.statistics;
        expect(acceptanceRate).toBe(drafted > 0 ? accepted / drafted : null);
        if (kind === "wrong guesses") expect(tokensPerVerify).toBeLessThan(1.2);
        if (kind === "w4a8") expect(acceptanceRate).toBeGreaterThan(0.5);
      }
      const adaptive = new Speculator(runner, adaptivePolicy(drafters[kind](), { rests: true }));
      expect(await grow(runner, [prompts[0]], COUNT, adaptive)).toEqual([expected[0]]);
    },
  );
});
