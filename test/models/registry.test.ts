import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HalftoneError, UnsupportedError } from "../../src/errors.ts";
import { decoderFor } from "../../src/models/registry.ts";

const tiny = {
  vocab_size: 8,
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 6,
  num_attention_heads: 4,
  num_key_value_heads: 2,
};
const ARCHITECTURES = "llama, mistral, qwen2, qwen3, phi3, gemma2, gemma3, gemma3_text, smollm3, olmo2".split(
  ", ",
);

function spec(model_type: string, values: Record<string, unknown> = {}, tensors?: Set<string>) {
  return decoderFor("here", { ...tiny, model_type, ...values }, tensors);
}

const windows = (...given: Parameters<typeof spec>) =>
  spec(...given).layers.map(({ attention }) => attention.window);

describe("what a config leaves out", () => {
  it.each([
    ["llama", false],
    ["mistral", false],
    ["qwen2", false],
    ["qwen3", false],
    ["phi3", false],
    ["olmo2", false],
    ["gemma2", true],
    ["gemma3_text", true],
    ["smollm3", true],
  ])("%s ties its head to the embedding: %s", (type, tied) => {
    const { head, embedding } = spec(type);
    expect(head === embedding).toBe(tied);
    expect(spec(type, { tie_word_embeddings: !tied }).head === embedding).toBe(false);
  });

  it("is a window of 4096 for Mistral, none where null says so", () => {
    expect(windows("mistral")).toEqual(Array(6).fill(4096));
    expect(windows("mistral", { sliding_window: null })).toEqual(Array(6).fill(0));
  });

  it("is Gemma's head size, and all sizes of Gemma 3", () => {
    expect(spec("gemma2").layers[0].attention.headSize).toBe(256);
    const decoder = decoderFor("here", { model_type: "gemma3", text_config: { num_hidden_layers: 3 } });
    expect([decoder.hiddenSize, decoder.vocabularySize, decoder.layers.length]).toEqual([2304, 262208, 3]);
  });
});

describe("the context", () => {
  const scaled = (rope_scaling: object) =>
    spec("llama", { max_position_embeddings: 100, rope_scaling }).contextLength;

  it("is what the config says, or what its rope is stretched to", () => {
    expect(scaled({ type: "linear", factor: 3 })).toBe(100);
    expect(scaled({ type: "dynamic", factor: 3 })).toBe(300);
    expect(scaled({ type: "yarn", factor: 3 })).toBe(300);
    expect(scaled({ type: "yarn", factor: 3, original_max_position_embeddings: 20 })).toBe(100);
  });
});

describe("windows", () => {
  it("of Qwen 2 start at max_window_layers, when used at all", () => {
    const sliding = { sliding_window: 5, max_window_layers: 4 };
    expect(windows("qwen2", sliding)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(windows("qwen2", { ...sliding, use_sliding_window: true })).toEqual([0, 0, 0, 0, 5, 5]);
  });

  it("of Gemma alternate as the pattern or layer_types say", () => {
    expect(windows("gemma2", { sliding_window: 5 })).toEqual([5, 0, 5, 0, 5, 0]);
    expect(windows("gemma3_text", { sliding_window: 5 })).toEqual([5, 5, 5, 5, 5, 0]);
    expect(windows("gemma3_text", { sliding_window: 5, sliding_window_pattern: 2 })).toEqual([
      5, 0, 5, 0, 5, 0,
    ]);
    const layer_types = ["full", "sliding", "full", "full", "full", "sliding"].map((t) => `${t}_attention`);
    expect(windows("gemma3_text", { sliding_window: 5, layer_types })).toEqual([0, 5, 0, 0, 0, 5]);
  });

  it("of SmolLM3 are the layers' without positions", () => {
    const { layers } = spec("smollm3", { use_sliding_window: true, sliding_window: 5 });
    expect(layers.map(({ attention }) => attention.window)).toEqual([0, 0, 0, 5, 0, 0]);
    expect(layers.map(({ attention }) => attention.rope)).toEqual([0, 0, 0, undefined, 0, 0]);
  });
});

describe("tensor names", () => {
  it("of Phi-3's fused projections are rows of one tensor", () => {
    const { attention, mlp } = spec("phi3").layers[0];
    expect([attention.q, attention.k, attention.v].map(({ firstRow, rows }) => [firstRow, rows])).toEqual([
      [0, 16],
      [16, 8],
      [24, 8],
    ]);
    expect([mlp.gate, mlp.up].map(({ weight, firstRow, rows }) => [weight, firstRow, rows])).toEqual([
      ["model.layers.0.mlp.gate_up_proj.weight", 0, 24],
      ["model.layers.0.mlp.gate_up_proj.weight", 24, 24],
    ]);
  });

  it.each([
    ["model.language_model", "lm_head"],
    ["language_model.model", "language_model.lm_head"],
  ])("of multimodal Gemma 3 begin with %s where the checkpoint's do", (stem, head) => {
    const config = { text_config: tiny, tie_word_embeddings: false };
    const decoder = spec("gemma3", config, new Set([`${stem}.norm.weight`]));
    expect(decoder.embedding.weight).toBe(`${stem}.embed_tokens.weight`);
    expect(decoder.head.weight).toBe(`${head}.weight`);
  });
});

describe("what is not supported", () => {
  it.each(["mamba2", "__proto__", "toString"])("architecture %s is named, and those that are", (type) => {
    expect(() => spec(type)).toThrow(UnsupportedError);
    expect(() => spec(type)).toThrow(
      `here: architecture "${type}" is not supported; supported: ${ARCHITECTURES.join(", ")}`,
    );
  });

  it.each([
    ["llama", { hidden_act: "relu" }, /activation "relu" \("hidden_act".*supported: silu, swish/],
    ["gemma2", { hidden_activation: "gelu" }, /activation "gelu" \("hidden_activation"/],
    ["gemma3_text", { use_bidirectional_attention: true }, /both directions/],
    ["qwen3", { layer_types: Array(6).fill("linear_attention") }, /layer type "linear_attention"/],
  ])("%s with %j", (type, values, message) => {
    expect(() => spec(type, values)).toThrow(UnsupportedError);
    expect(() => spec(type, values)).toThrow(message);
  });
});

describe("configs that make no sense", () => {
  it.each([
    ["llama", { hidden_size: 0 }, /"hidden_size" of its config is 0, expected an integer from 1/],
    ["llama", { num_key_value_heads: 3 }, /no divisor of 4 heads/],
    ["qwen2", { layer_types: ["full_attention"] }, /has 1 entries for 6 layers/],
    ["smollm3", { no_rope_layers: [1] }, /has 1 entries for 6 layers/],
    ["smollm3", { no_rope_layers: "all" }, /is no list of numbers/],
    ["gemma2", { attn_logit_softcapping: -1 }, /expected a number above 0/],
    ["gemma3", {}, /"text_config" of its config is missing/],
    ["mistral", { sliding_window: 0.5 }, /"sliding_window" of its config is 0.5/],
  ])("%s with %j are refused by key", (type, values, message) => {
    expect(() => spec(type, values)).toThrow(message);
  });

  it("end in one of our errors, whatever stands in them", () => {
    const keys = [...Object.keys(tiny), "rope_scaling", "rope_parameters", "rope_theta", "layer_types"];
    keys.push("head_dim", "sliding_window", "no_rope_layers", "text_config", "hidden_act", "rms_norm_eps");
    keys.push("max_position_embeddings", "partial_rotary_factor", "tie_word_embeddings");
    const config = fc.tuple(
      fc.constantFrom(...ARCHITECTURES),
      fc.dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 2 })),
    );
    fc.assert(
      fc.property(config, ([type, values]) => {
        try {
          spec(type, values);
        } catch (error) {
          expect(error).toBeInstanceOf(HalftoneError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
