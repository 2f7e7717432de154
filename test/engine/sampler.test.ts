import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { argmax, LogitsError } from "../../src/engine/sampler/greedy.ts";
import type { SamplerOptions } from "../../src/engine/sampler/options.ts";
import { createRandom, splitMix64 } from "../../src/engine/sampler/random.ts";
import { createSampler, sampleFrom } from "../../src/engine/sampler/sampler.ts";
import { topKThreshold } from "../../src/engine/sampler/topK.ts";
import { UsageError } from "../../src/errors.ts";

const history = { prompt: [0, 1], generated: [1, 2, 2] };

/** The plain reading with full sorts, in double precision. */
function reference(logits: Float32Array, options: SamplerOptions): number[] {
  const { temperature = 1, topK = 0, topP = 1, minP = 0, repetitionPenalty = 1 } = options;
  const { presencePenalty = 0, frequencyPenalty = 0, logitBias = {} } = options;
  const adjusted = Array.from(logits, (logit, id) => {
    let x = Math.fround(logit + (logitBias[id] ?? 0));
    const count = history.generated.filter((other) => other === id).length;
    const seen = count > 0 || history.prompt.includes(id);
    if (seen) x = Math.fround(x > 0 ? x / repetitionPenalty : x * repetitionPenalty);
    if (count > 0) x = Math.fround(x - (frequencyPenalty * count + presencePenalty));
    return x;
  });
  const largest = Math.max(...adjusted);
  if (temperature === 0) return adjusted.map((_, id) => (id === adjusted.indexOf(largest) ? 1 : 0));
  const kth = topK > 0 ? [...adjusted].sort((a, b) => b - a)[Math.min(topK, adjusted.length) - 1] : -Infinity;
  let weights = adjusted.map((x) => (x >= kth ? Math.exp((x - largest) / temperature) : 0));
  const total = weights.reduce((sum, x) => sum + x, 0);
  const order = weights.map((_, id) => id).sort((a, b) => weights[b] - weights[a] || a - b);
  let cumulative = 0;
  for (const id of order) {
    if (topP < 1 && cumulative >= topP * total) weights[id] = 0;
    else cumulative += weights[id];
  }
  weights = weights.map((x) => (x >= minP ? x : 0));
  const kept = weights.reduce((sum, x) => sum + x, 0);
  return weights.map((x) => x / kept);
}

describe("distribution", () => {
  const unit = fc.integer({ min: 1, max: 99 }).map((x) => x / 100);
  const options: fc.Arbitrary<SamplerOptions> = fc.record(
    {
      temperature: fc.constantFrom(0, 0.5, 1, 1.7),
      topK: fc.integer({ min: 0, max: 40 }),
      topP: unit,
      minP: unit,
      repetitionPenalty: fc.constantFrom(0.5, 1, 1.3),
      presencePenalty: fc.constantFrom(-1, 0, 0.5),
      frequencyPenalty: fc.constantFrom(-1, 0, 0.25),
      logitBias: fc.constantFrom<Record<number, number>[]>({}, { 0: 2, 3: -Infinity }, { 4: 0.5 }),
    },
    { requiredKeys: [] },
  );
  // Distinct logits: at a tie the last bit of a sum decides which of the equals top-p keeps.
  const logitLists = fc
    .uniqueArray(fc.integer({ min: -400, max: 400 }), { minLength: 5, maxLength: 300 })
    .map((list) => Float32Array.from(list, (x) => x / 37));

  test("equals the plain reading within 1e-6", () => {
    fc.assert(
      fc.property(logitLists, options, (logits, some) => {
        const before = logits.slice();
        const actual = createSampler(some).distribution(logits, history);
        const expected = reference(logits, some);
        const difference = Math.max(...expected.map((p, id) => Math.abs(p - actual[id])));
        expect(difference).toBeLessThan(1e-6);
        expect(logits).toEqual(before);
      }),
      { numRuns: 500 },
    );
  });

  test("samples follow it", () => {
    const logits = Float32Array.from({ length: 50 }, (_, id) => Math.sin(id * 7) * 3);
    const sampler = createSampler({ topP: 0.9, seed: 3 });
    const expected = sampler.distribution(logits, history);
    const draws = 20_000;
    for (const draw of [() => sampler.sample(logits, history), () => sampleFrom(expected, sampler.random)]) {
      const counts = new Float64Array(50);
      for (let i = 0; i < draws; i++) counts[draw()]++;
      for (let id = 0; id < 50; id++) {
        const deviation = Math.sqrt((expected[id] * (1 - expected[id])) / draws);
        expect(Math.abs(counts[id] / draws - expected[id])).toBeLessThanOrEqual(5 * deviation);
      }
    }
  });

  test("the k-th largest of a long list is that of a full sort", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 60 }),
        (pattern, length, k) => {
          const logits = Float32Array.from(
            { length },
            (_, i) => pattern[(i * i) % pattern.length] + (i % 7) / 8,
          );
          const sorted = logits.toSorted((a, b) => b - a);
          const expected = k >= length ? -Infinity : sorted[k - 1];
          expect(topKThreshold(logits, k, new Float32Array(length))).toBe(expected);
        },
      ),
    );
  });

  test("top-p keeps the fewest tokens, the lower ids among equals; top-k keeps ties", () => {
    const flat = new Float32Array(8);
    expect([...createSampler({ topP: 0.5 }).distribution(flat, history)]).toEqual([
      ...[0.25, 0.25, 0.25, 0.25],
      ...[0, 0, 0, 0],
    ]);
    expect([...createSampler({ topK: 2 }).distribution(flat, history)]).toEqual(Array(8).fill(1 / 8));
  });
});

describe("random", () => {
  test("is SplitMix64 into xoshiro128** (values of a plain Python version)", () => {
    const split = splitMix64(1234567n);
    expect([split(), split()]).toEqual([6457827717110365317n, 3203168211198807973n]);
    const random = createRandom(42);
    expect(Array.from({ length: 5 }, () => random.nextUint32())).toEqual([
      1776835114, 4165204688, 17111135, 2317295270, 2792088233,
    ]);
  });

  test("the same seed gives the same tokens", () => {
    const logits = Float32Array.from({ length: 100 }, (_, id) => (id % 7) / 3);
    const draw = (seed: number) => {
      const sampler = createSampler({ seed, topP: 0.8 });
      return Array.from({ length: 20 }, () => sampler.sample(logits, history));
    };
    expect(draw(5)).toEqual(draw(5));
    expect(draw(5)).not.toEqual(draw(6));
    const unseeded = createSampler();
    expect(createSampler({ seed: unseeded.seed }).sample(logits, history)).toBe(
      unseeded.sample(logits, history),
    );
  });
});

describe("errors", () => {
  test("logits that allow no choice", () => {
    expect(() => argmax(Float32Array.of(1, NaN))).toThrow(LogitsError);
    expect(() => argmax(Float32Array.of(1, Infinity))).toThrow(LogitsError);
    expect(() => argmax(Float32Array.of(-Infinity))).toThrow(LogitsError);
    expect(() => createSampler({ topP: 0.5 }).sample(Float32Array.of(NaN, 1), history)).toThrow(LogitsError);
  });

  test.each<object>([
    { temperature: -1 },
    { temperature: NaN },
    { topK: 1.5 },
    { topP: 0 },
    { minP: 2 },
    { repetitionPenalty: 0 },
    { presencePenalty: 3 },
    { seed: -1 },
    { logitBias: { x: 1 } },
    { logitBias: { 1: "2" } },
    { top_p: 0.5 },
  ])("option %o", (options) => {
    expect(() => createSampler(options)).toThrow(UsageError);
  });

  test("bias outside the vocabulary", () => {
    const sampler = createSampler({ logitBias: { 9: 1 } });
    expect(() => sampler.sample(new Float32Array(3), history)).toThrow(UsageError);
  });
});
