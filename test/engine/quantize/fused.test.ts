import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backends/backend.ts";
import type { Choice } from "../../../src/budget/plan.ts";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { ReferenceBackend } from "../../../src/ops/reference.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture, openModel } from "../../models/fixture.ts";
import { load, logitsOf } from "../../models/golden.ts";
import { few, ids, quantizedBytes } from "./checkpointBytes.ts";

const weight = (layer: number, name: string) =>
  `model.layers.${layer}.${/gate|up|down/.test(name) ? "mlp" : "self_attn"}.${name}_proj.weight`;
const choose = (layer: number, names: string, option: string): Choice => ({
  layers: names.split(" ").map((name) => weight(layer, name)),
  option,
});

/** Of a model whose attention has biases. */
const fused = [
  choose(0, "q v", "vq-2.5"),
  choose(0, "k", "nuq-3"),
  choose(0, "gate up", "tcq-s-3"),
  choose(1, "q k v", "nuq-4"),
  choose(1, "o", "f32"),
];
const apart = fused.flatMap(({ layers, option }) => layers.map((layer) => ({ layers: [layer], option })));

async function make(choice: readonly Choice[], run: Partial<QuantizeRun> = {}): Promise<string> {
  const folder = join(temporaryFolder(), "model");
  const checkpoint = await openFixture("llama-linear");
  await quantizeCheckpoint(checkpoint, folder, { scheme: "tcq-s-2", choice, threads: 2, ...run });
  return folder;
}

describe("a model with fused layers", () => {
  it.each<[string, () => Promise<Backend>]>([
    ["wasm", () => openWasm()],
    ["reference", async () => new ReferenceBackend()],
  ])("answers as with the same layers apart, %s", async (_, open) => {
    const tokens = ids[3].slice(0, 12);
    const logits: Float32Array[] = [];
    for (const choice of [fused, apart]) {
      const checkpoint = await openModel(await make(choice));
      for (const chunk of [1, 5]) {
        const runner = await load(checkpoint, await open());
        logits.push(await logitsOf(runner, tokens, chunk));
      }
    }
    expect(logits[0].some((value) => value !== 0)).toBe(true);
    expect(logits[0]).toEqual(logits[2]);
    expect(logits[1]).toEqual(logits[3]);
  });

  it.each([
    ["data-free", {}],
    ["calibrated", { calibrate: { ids: few } }],
  ] as const)("resumes %s to the same bytes", async (_, options) => {
    const folder = temporaryFolder();
    const run = { scheme: "tcq-s-2", choice: fused, ...options };
    const whole = await quantizedBytes("llama-linear", join(folder, "whole"), run);
    const controller = new AbortController();
    const { signal } = controller;
    // Within the fused weights of the first layer.
    const onProgress = ({ tensor }: { tensor: string }) => {
      if (tensor === weight(0, "v")) controller.abort();
    };
    const cut = join(folder, "cut");
    await expect(quantizedBytes("llama-linear", cut, { ...run, signal, onProgress })).rejects.toThrow();
    expect(existsSync(`${cut}.partial`)).toBe(true);
    expect((await quantizedBytes("llama-linear", cut, run)).equals(whole)).toBe(true);
  });

  it.each<[string, Choice, RegExp]>([
    ["layers of other inputs", choose(0, "q o", "nuq-3"), /do not share an input/],
    ["unknown layers", choose(7, "o", "nuq-3"), /no linear layer model\.layers\.7\.self_attn\.o_proj/],
  ])("refuses to fuse %s", async (_, choice, message) => {
    await expect(make([choice])).rejects.toThrow(message);
  });
});
