import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { sensitivities } from "../../../src/engine/sensitivity/sensitivities.node.ts";

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
