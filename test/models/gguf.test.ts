import { join } from "node:path";
import { expect, it } from "vitest";
import { bufferSource } from "../../src/checkpoint/byteSource.ts";
import type { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openSingle } from "../checkpoint/gguf/openSingle.ts";
import { type Entry, F32, STRING, U32 } from "../checkpoint/gguf/writeGguf.ts";
import { relativeError } from "../relativeError.ts";
import { asGguf } from "./asGguf.ts";
import { models, openFixture } from "./fixture.ts";
import { load, logitsOf, readGolden } from "./golden.ts";

interface Case {
  readonly architecture: string;
  readonly settings?: readonly Entry[];
  readonly factors?: Readonly<Record<string, readonly number[]>>;
  /** What a GGUF file cannot say, or says by the architecture's rule, in the folder's config. */
  readonly instead?: Readonly<Record<string, unknown>>;
  /** The folder's layers, repeated, so that the rule shows. */
  readonly layers?: number;
}

const scaling = (type: string, factor: number, original?: number): Entry[] => [
  ["rope.scaling.type", STRING, type],
  ["rope.scaling.factor", F32, factor],
  ...(original === undefined ? [] : [["rope.scaling.original_context_length", U32, original] as Entry]),
];
const LONG = [1.1, 1.7, 2.4, 3.1, 4, 6];
const SHORT = [1, 1.05, 1.1, 1.2, 1.3, 1.5];

/**
 * llama.cpp reads these files to the same logits (2026-11, llama-cpp-python 0.3.36: within 6e-6; Gemma 8e-4, its
 * GELU being a table of halfs), apart from what it does not know: windows of mistral and phi3, biases of qwen3
 * and smollm3.
 */
const cases: Record<string, Case> = {
  "llama-linear": { architecture: "llama", settings: scaling("linear", 3) },
  "llama-yarn": { architecture: "llama", settings: scaling("yarn", 4, 1024) },
  "llama3-v5": {
    architecture: "llama",
    settings: [["rope.freq_base", F32, 8000]],
    factors: { "rope_freqs.weight": llama3Factors(8, 64, 8000, 16) },
  },
  "llama-f16-v5": { architecture: "llama", settings: [["rope.freq_base", F32, 20000]] },
  mistral: { architecture: "llama", settings: [["attention.sliding_window", U32, 20]] },
  "qwen2-bf16": { architecture: "qwen2" },
  qwen3: { architecture: "qwen3" },
  "phi3-partial": {
    architecture: "phi3",
    settings: [
      ["rope.dimension_count", U32, 12],
      ["rope.scaling.original_context_length", U32, 64],
      ["rope.scaling.attn_factor", F32, Math.sqrt(1 + Math.log(4) / Math.log(64))],
      ["attention.sliding_window", U32, 40],
    ],
    factors: { "rope_factors_long.weight": LONG, "rope_factors_short.weight": SHORT },
  },
  gemma2: {
    architecture: "gemma2",
    settings: [
      ["attention.sliding_window", U32, 18],
      ["attn_logit_softcapping", F32, 3],
      ["final_logit_softcapping", F32, 5],
    ],
    instead: { query_pre_attn_scalar: 16 },
    layers: 4,
  },
  gemma3: {
    architecture: "gemma3",
    settings: [
      ["attention.sliding_window", U32, 22],
      ["rope.freq_base_swa", F32, 3000],
      ...scaling("linear", 4),
    ],
    instead: { query_pre_attn_scalar: 16, sliding_window_pattern: 6 },
    layers: 8,
  },
  smollm3: {
    architecture: "smollm3",
    instead: { no_rope_layers: [1, 1, 1, 0, 1], use_sliding_window: false },
    layers: 5,
  },
  olmo2: { architecture: "olmo2" },
};

/** The folder's model with `layers` layers, and with the config that a GGUF file amounts to. */
function adapted(folder: Checkpoint, { instead = {}, layers }: Case): Checkpoint {
  const own = Number(folder.config.num_hidden_layers);
  const tensors = new Map(folder.tensors);
  for (let layer = own; layer < (layers ?? own); layer++) {
    for (const [name, tensor] of folder.tensors) {
      const prefix = `model.layers.${layer % own}.`;
      if (!name.startsWith(prefix)) continue;
      const renamed = `model.layers.${layer}.${name.slice(prefix.length)}`;
      tensors.set(renamed, { ...tensor, name: renamed });
    }
  }
  const config = { ...folder.config, ...instead, num_hidden_layers: layers ?? own };
  return { ...folder, config, tensors };
}

it.each(Object.entries(cases))("%s as GGUF equals the folder", async (name, target) => {
  const folder = await openFixture(name);
  const { ids, logits } = await readGolden(join(models, name));
  const model = adapted(folder, target);
  const expected =
    model.config.num_hidden_layers === folder.config.num_hidden_layers && !target.instead
      ? logits
      : await logitsOf(await load(model, new ReferenceBackend()), ids, ids.length);
  const bytes = await asGguf(model, target);
  const gguf = await openSingle(bufferSource(bytes, name));
  const found = await logitsOf(await load(gguf, new ReferenceBackend()), ids, ids.length);
  expect(relativeError(found, expected)).toBeLessThan(1e-4);
});

it.each(Object.entries(cases))(
  "%s as Q8_0 equals float arithmetic over its weights",
  async (name, target) => {
    const folder = await openFixture(name);
    const { ids } = await readGolden(join(models, name));
    const model = adapted(folder, target);
    const quantized = await openSingle(bufferSource(await asGguf(model, target, true), name));
    expect(quantized.tensors.get("model.embed_tokens.weight")!.encoding).toBe("Q8_0");
    const floats = { ...model, tensors: quantized.tensors };
    const expected = await logitsOf(await load(floats, new ReferenceBackend()), ids, ids.length);
    const found = await logitsOf(await load(quantized, new ReferenceBackend()), ids, ids.length);
    expect(relativeError(found, expected)).toBeLessThan(1e-4);
  },
);

function llama3Factors(factor: number, original: number, theta: number, headSize: number): number[] {
  return Array.from({ length: headSize / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / headSize);
    const smooth = Math.min(1, Math.max(0, (original / wavelength - 1) / 3));
    return 1 / ((1 - smooth) / factor + smooth);
  });
}
