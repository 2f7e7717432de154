import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Costs } from "../../../src/engine/planning/costs.ts";
import { plannableModel } from "../../../src/engine/planning/layers.ts";
import { Planner } from "../../../src/engine/planning/planner.ts";
import { costProfile } from "../../../src/engine/planning/profile.node.ts";
import { fitSteps } from "../../../src/engine/planning/profile.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture } from "../../models/fixture.ts";

const schemes = ["nuq-2", "nuq-4", "tcq-s-3"];

describe("a cost profile", () => {
  // Biases and a head of its own; tied.
  it.each(["llama-linear", "qwen2-bf16"])("has a time for whatever a plan may choose, %s", async (model) => {
    const checkpoint = await openFixture(model);
    const cacheFolder = temporaryFolder();
    const run = { schemes, batch: 2, threads: 1, cacheFolder };
    const profile = await costProfile(checkpoint, run);
    expect(profile.overheadSeconds).toBeGreaterThan(0);
    expect(profile.times.every(({ seconds }) => seconds >= 0)).toBe(true);
    expect(await costProfile(checkpoint, run)).toEqual(profile);
    const { layers } = plannableModel(checkpoint);
    const sensitivities = new Map(layers.map(({ name }, i) => [name, 1 + (i % 3)]));
    // As measured; and where all plans are almost equally fast.
    for (const costs of [profile, { ...profile, overheadSeconds: 1 }]) {
      const planner = new Planner(checkpoint, {
        ...{ sensitivities, palette: schemes, embeddingScheme: "uniform-8" },
        costs: new Costs(costs),
      });
      const { least, most } = await planner.range("tokensPerSecond");
      for (const tokensPerSecond of [least, (least + most) / 2, most]) {
        const { predicted } = await planner.plan({ tokensPerSecond, batch: 2 });
        expect(predicted.tokensPerSecond).toBeGreaterThanOrEqual(tokensPerSecond);
      }
      const promise = planner.plan({ tokensPerSecond: 2 * most, batch: 2 });
      await expect(promise).rejects.toThrow(/cannot be had here; the fastest plan makes/);
    }
    // A damaged cache is measured anew.
    const [file] = readdirSync(cacheFolder);
    writeFileSync(join(cacheFolder, file), "{");
    expect((await costProfile(checkpoint, run)).times).toHaveLength(profile.times.length);
  });

  it("tells the products of a step from the rest", () => {
    const fit = fitSteps([1, 2, 4], [1.3, 2.4, 4.6]);
    expect(fit.factor).toBeCloseTo(1.1);
    expect(fit.overheadSeconds).toBeCloseTo(0.2);
    expect(fitSteps([1], [1.5])).toEqual({ factor: 1, overheadSeconds: 0.5 });
    expect(fitSteps([1, 2], [1, 9]).factor).toBe(1.2);
  });
});
