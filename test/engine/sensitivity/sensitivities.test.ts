import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { actualLosses } from "../../../src/engine/sensitivity/actual.node.ts";
import { sensitivities } from "../../../src/engine/sensitivity/sensitivities.node.ts";
import { distortions } from "../../../src/quantizers/distortions.ts";

const folder = await mkdtemp(join(tmpdir(), "halftone-sensitivities-"));
afterAll(() => rm(folder, { recursive: true }));

const checkpoint = await openCheckpoint("test/fixtures/models/phi3-partial");
const options = { sequences: 3, sequenceLength: 16, threads: 1, cacheFolder: folder };

describe("sensitivities", () => {
  it("stops, goes on and is remembered", async () => {
    const phases = new Set<string>();
    const stop = new AbortController();
    let measured = 0;
    const stopped = sensitivities(checkpoint, {
      ...options,
      signal: stop.signal,
      onProgress: ({ phase, done }) => {
        phases.add(phase);
        if (phase === "measure" && done > 0.5) stop.abort();
        if (phase === "measure") measured++;
      },
    });
    await expect(stopped).rejects.toThrow();
    expect(phases).toEqual(new Set(["sample", "measure"]));
    const before = measured;
    const onProgress = () => {
      measured++;
    };
    const resumed = await sensitivities(checkpoint, { ...options, onProgress });
    expect(measured).toBeGreaterThan(before);
    const whole = await sensitivities(checkpoint, { ...options, cacheFolder: join(folder, "other") });
    expect(resumed).toEqual(whole);
    const after = measured;
    expect(await sensitivities(checkpoint, { ...options, onProgress })).toEqual(whole);
    expect(measured).toBe(after);
    expect((await readdir(folder)).filter((name) => name.endsWith(".json"))).toHaveLength(1);
    expect(whole).toMatchObject({ data: "samples", tokens: 48 });
    // Fused tensors count once.
    const names = whole.layers.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain("model.layers.0.self_attn.qkv_proj.weight");
    for (const { sensitivity } of whole.layers) expect(sensitivity).toBeGreaterThan(0);
  });

  it("tell what calibration leaves, when asked", async () => {
    const { layers } = await sensitivities(checkpoint, { ...options, gains: true });
    for (const { name, calibrationGain } of layers) {
      if (/embed|head/.test(name)) expect(calibrationGain).toBe(1);
      else expect(calibrationGain).toSatisfy((gain: number) => gain > 0 && gain < 1);
    }
    let calls = 0;
    const onProgress = () => {
      calls++;
    };
    const again = await sensitivities(checkpoint, { ...options, gains: true, onProgress });
    expect(again.layers).toEqual(layers);
    expect(calls).toBe(0);
  });

  it("predict the losses of quantizing one tensor", async () => {
    const long = { ...options, sequences: 4, sequenceLength: 32 };
    const { layers } = await sensitivities(checkpoint, long);
    const losses = await actualLosses(checkpoint, ["nuq-4", "nuq-5"], long);
    expect(losses).toHaveLength(2 * layers.length);
    for (const [i, { layer, option, loss }] of losses.entries()) {
      const { name, sensitivity } = layers[i >> 1];
      expect([layer, option]).toEqual([name, ["nuq-4", "nuq-5"][i % 2]]);
      // Errors of small matrices are few draws.
      const predicted = sensitivity * distortions[option];
      expect(loss / predicted, `${name} ${option}`).toSatisfy((ratio: number) => ratio > 0.3 && ratio < 3);
    }
    expect(await actualLosses(checkpoint, ["nuq-4", "nuq-5"], long)).toEqual(losses);
    await expect(actualLosses(checkpoint, ["f32"], long)).rejects.toThrow(/does not quantize/);
  });

  it("measure losses around a quantized model", async () => {
    const long = { ...options, sequences: 4, sequenceLength: 32 };
    const losses = await actualLosses(checkpoint, ["nuq-2", "nuq-6"], { ...long, around: "nuq-2" });
    // A tensor that is left as it is there adds nothing to its share.
    const same = losses.filter(({ option }) => option === "nuq-2").map(({ loss }) => loss);
    expect(new Set(same.map((loss) => loss.toPrecision(5))).size).toBe(1);
    expect(same[0]).toBeGreaterThan(0);
    const better = losses.filter(({ option }) => option === "nuq-6").map(({ loss }) => loss);
    expect(better.reduce((sum, loss) => sum + loss)).toBeLessThan(same.reduce((sum, loss) => sum + loss));
    await expect(actualLosses(checkpoint, ["nuq-2"], { ...long, around: "f16" })).rejects.toThrow(
      /does not quantize/,
    );
  });

  it.each([
    [{ sequences: 0 }, /sequences 0: takes a whole number/],
    [{ sequenceLength: 1e9 }, /sequenceLength 1000000000: takes/],
    [{ norms: [0] }, /norms 0: takes numbers/],
    [{ texts: ["Hello"] }, /no tokenizer/],
    [{ ids: [] }, /no sequences/],
    [{ ids: [[]] }, /sequence 0 has 0 tokens/],
    [{ ids: [[1], [99_999]] }, /sequence 1 has token 99999, outside/],
  ])("refuses %j", async (wrong, message) => {
    await expect(sensitivities(checkpoint, { ...options, ...wrong })).rejects.toThrow(message);
  });
});
