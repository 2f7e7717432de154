import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { divergence, summarizeRow } from "../../../src/engine/evaluate/softmax.ts";
import { Model } from "../../../src/engine/model.ts";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { holdOut } from "../../../src/engine/tuning/sequences.ts";
import { ReferenceBackend } from "../../../src/ops/reference.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture, openModel } from "../../models/fixture.ts";
import { ids, quantizedBytes } from "./checkpointBytes.ts";

const tune = { steps: 11, tokens: 80, rate: 0.01, ids };
// Products this small gain nothing from threads.
const run: QuantizeRun = { scheme: "nuq-2", tune, threads: 1 };

async function tensorsOf(folder: string): Promise<Map<string, Float32Array | Uint8Array>> {
  const checkpoint = await openCheckpoint(folder);
  const values = new Map<string, Float32Array | Uint8Array>();
  for (const [name, { shape, readRows, readBytes }] of checkpoint.tensors) {
    values.set(name, name.endsWith(".codes") ? await readBytes!() : await readRows(0, shape[0]));
  }
  await checkpoint.close();
  return values;
}

async function interrupted(folder: string, run: QuantizeRun, phase: string, share: number): Promise<void> {
  const controller = new AbortController();
  const onProgress: QuantizeRun["onProgress"] = (progress) => {
    if (progress.phase === phase && progress.done > share * progress.total) controller.abort();
  };
  const { signal } = controller;
  const cut = quantizedBytes("llama-linear", folder, { ...run, signal, onProgress });
  await expect(cut).rejects.toThrow(/abort/i);
}

describe("a tuned quantization", () => {
  it("changes scales and norms only, and says what it did", async () => {
    const folder = temporaryFolder();
    await quantizedBytes("llama-linear", join(folder, "plain"), { scheme: "nuq-2" });
    const checkpoint = await openFixture("llama-linear");
    const steps = new Set<string>();
    const result = await quantizeCheckpoint(checkpoint, join(folder, "tuned"), {
      ...run,
      embeddingScheme: "nuq-4",
      onProgress: ({ tensor }) => tensor.startsWith("step ") && steps.add(tensor),
    });
    expect([...steps].at(-1)).toBe("step 11 of 11");
    const plain = await tensorsOf(join(folder, "plain"));
    const tuned = await tensorsOf(join(folder, "tuned"));
    const changed = [...plain].filter(([name, values]) => tuned.get(name)!.some((v, i) => v !== values[i]));
    expect(changed.length).toBeGreaterThan(10);
    for (const [name] of changed) expect(name).toMatch(/\.scales$|norm\.weight$/);
    const { quantization_config: config } = JSON.parse(
      readFileSync(join(folder, "tuned", "config.json"), "utf8"),
    );
    expect(config.tuning).toMatchObject({ ...result.tuning, steps: 11, tokens: 80, rate: 0.01, seed: 0 });
    expect(result.tuning!.divergenceAfter).toBeLessThan(result.tuning!.divergenceBefore);
    expect(existsSync(join(folder, "tuned", ".halftone-tuning"))).toBe(false);
  });

  it("is what the engine runs: a mix with fused layers and biases, in the original basis", async () => {
    const folder = join(temporaryFolder(), "tuned");
    const layer = (name: string) => `model.layers.0.self_attn.${name}_proj.weight`;
    const choice = [
      { layers: [layer("q"), layer("v")], option: "vq-2.5" },
      { layers: [layer("k")], option: "f32" },
      { layers: [layer("o")], option: "tcq-s-2" },
    ];
    const original = await openFixture("llama-linear");
    const { tuning } = await quantizeCheckpoint(original, folder, { ...run, choice, rotate: false });
    expect(tuning!.divergenceAfter).toBeLessThan(tuning!.divergenceBefore);
    const models = [original, await openModel(folder)].map((checkpoint) =>
      Model.load(checkpoint, new ReferenceBackend(), { activations: "float" }),
    );
    const [expected, actual] = await Promise.all(models);
    const { heldOut } = holdOut(ids);
    let sum = 0;
    for (const ids of heldOut) {
      const step = { ids, positions: ids.map((_, i) => i), length: ids.length };
      const [p, q] = [await expected.runner.step(step, "all"), await actual.runner.step(step, "all")];
      for (let at = 0; at < p.length; at += 96) {
        sum += divergence(p, summarizeRow(p, at, 96), q, summarizeRow(q, at, 96), at, 96);
      }
    }
    expect(sum / heldOut.flat().length / tuning!.divergenceAfter).toBeCloseTo(1, 3);
  });

  it("has the same bytes at any thread count", async () => {
    const folder = temporaryFolder();
    const make = (threads: number) =>
      quantizedBytes("qwen2-bf16", join(folder, `${threads}`), {
        ...{ scheme: "nuq-2", threads, tune: { ...tune, steps: 2 } },
      });
    expect((await make(1)).equals(await make(2))).toBe(true);
  });

  it.each([
    ["tune", 0.5, run],
    ["tune", 0.02, { ...run, tune: { ...tune, ids: undefined, sequenceLength: 32 } }],
    ["tune", 0.9, { ...run, scheme: "tcq-s-2", calibrate: { ids }, tune: { ...tune, ids: undefined } }],
  ] as const)("goes on after a stop in %s to the same bytes", async (phase, share, run) => {
    const folder = temporaryFolder();
    const whole = await quantizedBytes("llama-linear", join(folder, "whole"), run);
    await interrupted(join(folder, "cut"), run, phase, share);
    const phases: string[] = [];
    const again = await quantizedBytes("llama-linear", join(folder, "cut"), {
      ...run,
      onProgress: ({ phase, done }) => {
        if (done > 0) phases.push(phase);
      },
    });
    expect(again.equals(whole)).toBe(true);
    expect(phases).not.toContain("sample");
  });

  it("goes on when it was killed while it stored scales and norms", async () => {
    const folder = temporaryFolder();
    const calibrated = { ...run, calibrate: { ids } };
    const whole = await quantizedBytes("llama-linear", join(folder, "whole"), calibrated);
    await interrupted(join(folder, "cut"), calibrated, "tune", 0.9);
    const file = join(folder, "cut.partial", "model.safetensors.partial");
    const bytes = readFileSync(file);
    const start = 8 + Number(bytes.readBigUInt64LE());
    const header = JSON.parse(bytes.subarray(8, start).toString());
    const layer = "model.layers.0";
    for (const name of [`${layer}.self_attn.q_proj.scales`, `${layer}.input_layernorm.weight`]) {
      const [from, to] = header[name].data_offsets;
      bytes.fill(1, start + from, start + to);
    }
    writeFileSync(file, bytes);
    const observed: string[] = [];
    const again = await quantizedBytes("llama-linear", join(folder, "cut"), {
      ...calibrated,
      onProgress: ({ phase }) => observed.push(phase),
    });
    expect(again.equals(whole)).toBe(true);
    expect(observed).not.toContain("observe");
  });

  it("says what cannot be", async () => {
    const path = join(temporaryFolder(), "a");
    const refused = (changed: Partial<QuantizeRun>, message: RegExp) =>
      expect(quantizedBytes("llama-linear", path, { ...run, ...changed })).rejects.toThrow(message);
    await refused({ tune: { steps: 1, ids: ids.slice(0, 1) } }, /held out.*give more text/);
    await refused({ tune: { steps: 0 } }, /tune.steps 0: takes a whole number from 1/);
    await refused({ residual: 4 }, /choose one/);
  });
});
