import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ModelPlan, parseModelPlan } from "../../../src/budget/modelPlan.ts";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { checkFits } from "../../../src/engine/planning/fit.ts";
import { frontier } from "../../../src/engine/planning/frontier.ts";
import { plannableModel } from "../../../src/engine/planning/layers.ts";
import { Planner } from "../../../src/engine/planning/planner.ts";
import { lossKey } from "../../../src/engine/planning/problem.ts";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import { distortions } from "../../../src/quantizers/distortions.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture } from "../../models/fixture.ts";

/** Sensitivities that differ from layer to layer. */
function factsOf(checkpoint: Checkpoint) {
  const { layers } = plannableModel(checkpoint);
  return { sensitivities: new Map(layers.map(({ name }, i) => [name, 0.1 + ((i * 7) % 5)])) };
}

async function plannerOf(model: string, palette?: readonly string[]): Promise<[Planner, Checkpoint]> {
  const checkpoint = await openFixture(model);
  const options = { ...factsOf(checkpoint), palette, embeddingScheme: "uniform-8" };
  return [new Planner(checkpoint, options), checkpoint];
}

describe("a plan of a model", () => {
  // Untied with biases, tied, and with queries, keys and values in one tensor.
  it.each(["llama-linear", "qwen2-bf16", "phi3-partial"])("knows the size of the file, %s", async (model) => {
    const [planner, checkpoint] = await plannerOf(model);
    const { least, most } = await planner.range("bytes");
    for (const bytes of [least, Math.round((least + most) / 2)]) {
      const plan = await planner.plan({ bytes });
      expect(plan.predicted.bytes).toBeLessThanOrEqual(bytes);
      const folder = join(temporaryFolder(), "model");
      await quantizeCheckpoint(checkpoint, folder, { scheme: "nuq-4", choice: plan.choice, threads: 2 });
      expect(statSync(join(folder, "model.safetensors")).size).toBe(plan.predicted.bytes);
    }
    await expect(planner.plan({ bytes: least - 1 })).rejects.toThrow(`it takes ${least}`);
  });

  it("takes measured losses for what it would predict", async () => {
    const checkpoint = await openFixture("llama-linear");
    const palette = ["nuq-2", "nuq-4"];
    const { sensitivities } = factsOf(checkpoint);
    const name = "model.layers.0.mlp.down_proj.weight";
    // More bits would make it worse.
    const losses = new Map([
      [lossKey(name, "nuq-2"), 0.001],
      [lossKey(name, "nuq-4"), 0.5],
    ]);
    const options = { sensitivities, palette, embeddingScheme: "uniform-8" };
    const optionOf = async (planner: Planner) =>
      (await planner.plan({ bits: 4 })).choice.find(({ layers }) => layers.includes(name))!.option;
    expect(await optionOf(new Planner(checkpoint, options))).toBe("nuq-4");
    const informed = new Planner(checkpoint, { ...options, losses });
    expect(await optionOf(informed)).toBe("nuq-2");
    const one = (option: string) => informed.predict(informed.singleScheme(option)).loss;
    const rest = new Planner(checkpoint, { ...options, losses: new Map() });
    const own = (option: string) => sensitivities.get(name)! * distortions[option];
    for (const option of palette) {
      const predicted = rest.predict(rest.singleScheme(option)).loss;
      expect(one(option)).toBeCloseTo(predicted - own(option) + losses.get(lossKey(name, option))!, 6);
    }
    // Calibration leaves a share of measured losses too.
    const gains = new Map([[name, 0.5]]);
    const calibrated = new Planner(checkpoint, { ...options, losses, gains });
    const loss = calibrated.predict(calibrated.singleScheme("nuq-4")).loss;
    expect(loss).toBeCloseTo(one("nuq-4") - 0.25, 6);
  });

  it("refuses before anything is measured what no plan meets", async () => {
    const [planner] = await plannerOf("llama-linear");
    await expect(planner.check({ bits: 1 })).rejects.toThrow(
      "1 bits per weight are too few; the least is 1.5",
    );
    await expect(planner.check({ bytes: 10 })).rejects.toThrow("10 bytes are too few");
    await planner.check({ bits: 2 });
  });

  it("spends bits on the layers that matter and fuses those of equal scheme", async () => {
    const [planner] = await plannerOf("llama-linear", ["tcq-s-2", "tcq-s-4"]);
    const two = await planner.plan({ bits: 2 });
    const fused = two.choice.filter(({ layers }) => layers.length > 1).map(({ layers }) => layers.length);
    expect(fused).toEqual([3, 2, 3, 2]);
    const three = await planner.plan({ bits: 3 });
    expect(three.predicted.loss).toBeLessThan(two.predicted.loss);
    const facts = factsOf(await openFixture("llama-linear"));
    const chosen = (option: string) =>
      three.choice.flatMap((each) => (each.option === option ? each.layers : []));
    const weight = (names: string[]) =>
      names.reduce((sum, name) => sum + facts.sensitivities.get(name)!, 0) / names.length;
    expect(weight(chosen("tcq-s-4"))).toBeGreaterThan(weight(chosen("tcq-s-2")));
    await expect(planner.plan({ bits: 1.75 })).rejects.toThrow(/1\.75 bits .* too few; the least is 2$/);
  });

  it("is refused for another model, and for other weights", async () => {
    const [planner, checkpoint] = await plannerOf("llama-linear");
    const plan = await planner.plan({ bits: 3 });
    await checkFits(plan, checkpoint);
    const without = (part: Partial<ModelPlan>) => checkFits({ ...plan, ...part }, checkpoint);
    await expect(checkFits(plan, await openFixture("phi3-partial"))).rejects.toThrow(
      /which this model does not have/,
    );
    await expect(without({ choice: plan.choice.slice(1) })).rejects.toThrow(/lacks model\.layers\.0/);
    await expect(without({ model: { source: "x", digest: "00" } })).rejects.toThrow(/other weights/);
    await without({ model: { source: "x" } });
  });

  it("is read from JSON, and refused when broken", async () => {
    const [planner] = await plannerOf("llama-linear");
    const plan = await planner.plan({ bits: 3 });
    const json = JSON.parse(JSON.stringify(plan));
    expect(parseModelPlan(json)).toEqual(plan);
    const broken: [unknown, RegExp][] = [
      [7, /no plan for a model/],
      [{ ...json, version: 9 }, /version 9/],
      [{ ...json, choice: [] }, /choice: /],
      [{ ...json, choice: [{ layers: [3], option: "nuq-3" }] }, /choice\[0\]\.layers\[0\]: /],
      [{ ...json, choice: [...json.choice, json.choice[0]] }, /a second time/],
    ];
    for (const [value, message] of broken) expect(() => parseModelPlan(value)).toThrow(message);
  });

  it("needs the sensitivity of every layer", async () => {
    const checkpoint = await openFixture("llama-linear");
    const planner = new Planner(checkpoint, { sensitivities: new Map(), embeddingScheme: "uniform-8" });
    await expect(planner.plan({ bits: 3 })).rejects.toThrow(/sensitivities lack model\.layers\.0/);
  });
});

describe("the frontier of a model", () => {
  it("loses less with more bits, and less than any scheme alone", async () => {
    const [planner] = await plannerOf("llama-linear");
    const { bits, speed, single } = await frontier(planner, { count: 5, batch: undefined });
    expect(speed).toEqual([]);
    for (const [i, { loss, idealLoss }] of bits.entries()) {
      expect(loss).toBeGreaterThan(idealLoss);
      if (i > 0) expect(loss).toBeLessThan(bits[i - 1].loss);
    }
    for (const { bits: alone, loss } of single.filter((point) => point.bits <= 5)) {
      const plan = await planner.plan({ bits: alone });
      expect(plan.predicted.loss).toBeLessThanOrEqual(loss * 1.001);
    }
  });
});
