import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ModelConfig } from "../../src/models/config.ts";
import type { RopeSpec } from "../../src/models/rope.ts";
import { ropeFromConfig } from "../../src/models/ropeConfig.ts";

interface RopeGolden {
  readonly config: Record<string, unknown> & { hidden_size: number; num_attention_heads: number };
  readonly amplitude: number;
  /** By sequence length. */
  readonly inverseFrequencies: Record<string, number[]>;
}

const goldens: Record<string, RopeGolden> = JSON.parse(
  readFileSync(join(import.meta.dirname, "golden.ropes.json"), "utf8"),
);
/** Two units in the last place: torch's vectorized pow is not exactly rounded. */
const TOLERANCE = 2 ** -22;

function rope(values: Record<string, unknown>, headSize = 8): RopeSpec {
  return ropeFromConfig(new ModelConfig("here", { max_position_embeddings: 64, ...values }), headSize);
}

describe("inverse frequencies", () => {
  it.each(Object.entries(goldens))("of %s equal transformers'", (_, golden) => {
    const { hidden_size, num_attention_heads } = golden.config;
    const spec = rope(golden.config, hidden_size / num_attention_heads);
    expect(spec.amplitude).toBeCloseTo(golden.amplitude, 12);
    for (const [length, expected] of Object.entries(golden.inverseFrequencies)) {
      const actual = spec.inverseFrequencies(Number(length));
      expect(actual.length).toBe(expected.length);
      const errors = expected.map((value, i) => Math.abs(actual[i] / Math.fround(value) - 1));
      expect(Math.max(...errors)).toBeLessThanOrEqual(TOLERANCE);
    }
  });

  it("divide by the factors of a GGUF file", () => {
    const factors = [1, 2, 3, 4];
    const [plain, divided] = [rope({}), rope({ rope_scaling: { rope_type: "gguf_factors", factors } })];
    const expected = plain.inverseFrequencies(1).map((frequency, i) => frequency / factors[i]);
    expect(divided.inverseFrequencies(1)).toEqual(expected);
  });
});

describe("a rope's config", () => {
  const frequencies = (values: Record<string, unknown>) => rope(values).inverseFrequencies(1);

  it("is read in both styles", () => {
    const linear = { rope_type: "linear", factor: 2 };
    expect(frequencies({ rope_theta: 500, rope_scaling: linear })).toEqual(
      frequencies({ rope_parameters: { ...linear, rope_theta: 500 } }),
    );
  });

  it("prefers rope_scaling, unless it is empty", () => {
    const rope_parameters = { rope_type: "linear", factor: 2 };
    const four = frequencies({ rope_scaling: { type: "linear", factor: 4 } });
    expect(frequencies({ rope_parameters, rope_scaling: { type: "linear", factor: 4 } })).toEqual(four);
    expect(frequencies({ rope_parameters, rope_scaling: {} })).toEqual(frequencies({ rope_parameters }));
  });

  it("turns part of a head", () => {
    expect(rope({ partial_rotary_factor: 0.5 }).rotated).toBe(4);
    expect(rope({ rope_parameters: { partial_rotary_factor: 0.75 } }).rotated).toBe(6);
  });

  it.each([
    [
      { rope_scaling: { rope_type: "warp" } },
      /rope type "warp" is not supported; supported: default, linear/,
    ],
    [{ rope_parameters: { full_attention: {} } }, /by layer type/],
    [{ rope_scaling: { type: "linear" } }, /here: "factor" of its config is missing/],
    [{ rope_scaling: { type: "linear", factor: 0 } }, /"factor" of its config is 0/],
    [{ rope_scaling: { rope_type: "gguf_factors", factors: [1] } }, /has 1 entries, expected 4/],
    [{ rope_scaling: { rope_type: "gguf_factors", factors: [1, 1, 1, -1] } }, /not above 0/],
    [{ partial_rotary_factor: 1.5 }, /turns 12 of 8 elements/],
    [{ partial_rotary_factor: 0.01 }, /turns 0 of 8 elements/],
    [{ rope_theta: "big" }, /"rope_theta" of its config is "big"/],
    [{ rope_scaling: 3 }, /"rope_scaling" of its config is no object/],
  ])("%j is refused", (values, message) => {
    expect(() => rope(values)).toThrow(message);
  });
});
