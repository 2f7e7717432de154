import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { prefill } from "../../src/engine/prefill.ts";
import type { Runner } from "../../src/engine/runner.ts";
import type { SamplerOptions } from "../../src/engine/sampler/options.ts";
import { createRandom } from "../../src/engine/sampler/random.ts";
import { createSampler, sampleFrom } from "../../src/engine/sampler/sampler.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { acceptOrReplace } from "../../src/speculation/acceptance.ts";
import type { Drafter } from "../../src/speculation/drafter.ts";
import { ngramDrafter } from "../../src/speculation/ngram.ts";
import { fixedPolicy } from "../../src/speculation/policy.ts";
import { readingDrafter } from "../../src/speculation/readingDrafter.ts";
import { Speculator } from "../../src/speculation/speculator.ts";
import { growTogether } from "../../src/speculation/together.ts";
import { loadQuantized } from "../engine/quantizedFixture.ts";
import { differs } from "./chiSquare.ts";
import { promptOf } from "./prompts.ts";

async function grow(...args: Parameters<typeof growTogether>) {
  return (await growTogether(...args)).answers;
}

describe("a drawn token is accepted or replaced", () => {
  const p = Float32Array.of(0.05, 0.4, 0.25, 0, 0.2, 0.1);
  const q = Float32Array.of(0.3, 0.1, 0.25, 0.05, 0.3, 0);
  const probabilities = new Map(
    Array.from(p, (value, i) => [String(i), value] as const).filter(([, v]) => v > 0),
  );

  function countsOf(draw: (random: ReturnType<typeof createRandom>) => number): Map<string, number> {
    const random = createRandom(7);
    const counts = new Map<string, number>();
    for (let i = 0; i < 20000; i++) {
      const token = String(draw(random));
      counts.set(token, (counts.get(token) ?? 0) + 1);
    }
    return counts;
  }

  it("so that it is distributed as the verifier's", () => {
    const counts = countsOf((random) => acceptOrReplace(sampleFrom(q, random), p, q, random));
    expect(differs(counts, probabilities)).toBe(false);
  });

  it("and the test notices a replacement drawn from all of p", () => {
    const counts = countsOf((random) => {
      const id = sampleFrom(q, random);
      return random.nextFloat() * q[id] < p[id] ? id : sampleFrom(p, random);
    });
    expect(differs(counts, probabilities)).toBe(true);
  });

  it("also where both distributions are the same", () => {
    const same = new Map(Array.from(q, (value, i) => [String(i), value] as const).filter(([, v]) => v > 0));
    const counts = countsOf((random) => acceptOrReplace(sampleFrom(q, random), q, q, random));
    expect(differs(counts, same)).toBe(false);
  });
});

describe("sampling with a model", () => {
  const RUNS = 3000;
  const DRAWN = 3;
  const sampling: SamplerOptions = { temperature: 0.9, topK: 5, minP: 0.02, repetitionPenalty: 1.2 };
  const prompt = promptOf(9, 1);
  let backend: Backend;
  let runner: Runner;
  let probabilities: Map<string, number>;

  beforeAll(async () => {
    backend = await openWasm();
    runner = await loadQuantized("llama3-v5", backend, {
      ...{ sequences: 1, chunk: 32 },
      reading: { activations: "float" },
    });
    probabilities = await exactly([], 1, new Map());
  });
  afterAll(() => backend.dispose());

  /** The probabilities of all continuations of DRAWN tokens, by the verifier alone. */
  async function exactly(tokens: number[], probability: number, found: Map<string, number>) {
    if (tokens.length === DRAWN) return found.set(tokens.join(" "), probability);
    const logits = await prefill(runner, [...prompt, ...tokens]);
    const { distribution } = createSampler({ ...sampling, seed: 0 });
    const next = distribution(logits!, { prompt, generated: tokens });
    for (const [id, share] of next.entries()) {
      if (share > 0) await exactly([...tokens, id], probability * share, found);
    }
    return found;
  }

  async function countsOf(drafter: Drafter): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    // One stream of random numbers: seeds that follow one another are no independent draws of a test.
    const sampler = createSampler({ ...sampling, seed: 11 });
    const speculator = new Speculator(runner, fixedPolicy([drafter], DRAWN - 1));
    const logits = await prefill(runner, prompt);
    for (let run = 0; run < RUNS; run++) {
      const generated = [sampler.sample(logits!, { prompt, generated: [] })];
      while (generated.length < DRAWN) {
        const room = DRAWN - generated.length;
        const [burst] = await speculator.burst([{ slot: 0, prompt, generated, room, sampler }]);
        generated.push(...burst);
      }
      const outcome = generated.join(" ");
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    return counts;
  }

  const w4a4 = () => readingDrafter("w4a4", runner, { activations: "int4" });

  it("draws from the verifier's distribution", async () => {
    expect(probabilities.size).toBeGreaterThan(30);
    expect(differs(await countsOf(w4a4()), probabilities)).toBe(false);
  });

  it("and the test notices drafts that were not drawn from what they say", async () => {
    const honest = w4a4();
    const likeliest = (distribution: Float32Array) => distribution.indexOf(Math.max(...distribution));
    const lying: Drafter = {
      ...honest,
      draft: async (sequences, lengths) =>
        (await honest.draft(sequences, lengths)).map((draft) => {
          return { ...draft, ids: draft.ids.map((_, i) => likeliest(draft.distributions![i])) };
        }),
    };
    expect(differs(await countsOf(lying), probabilities)).toBe(true);
  });

  it("gives the same tokens for a seed with look-ups as without", async () => {
    for (const seed of [1, 2, 3]) {
      const seeded = { ...sampling, topK: 3, seed };
      const [plain, looked] = [fixedPolicy([], 1), fixedPolicy([ngramDrafter()], 4)].map(
        (policy) => new Speculator(runner, policy),
      );
      // What comes twice is drafted, whatever the model says.
      const twice = [...prompt, ...prompt];
      const expected = await grow(runner, [twice], 80, plain, seeded);
      expect(await grow(runner, [twice], 80, looked, seeded)).toEqual(expected);
      expect(looked.statistics.drafted).toBeGreaterThan(0);
    }
  });
});
