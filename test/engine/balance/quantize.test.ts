import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { uniformShares } from "../../../src/compensation/settings.ts";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { models, openFixture } from "../../models/fixture.ts";
import { relativeError } from "../../relativeError.ts";
import { ids } from "../quantize/checkpointBytes.ts";
import { floatLogits, scattered } from "./scattered.ts";

const plain: QuantizeRun = { scheme: "nuq-4", embeddingScheme: "f32", threads: 1 };

async function quantized(checkpoint: Checkpoint, run: Partial<QuantizeRun>) {
  const folder = join(temporaryFolder(), "model");
  const { balanced } = await quantizeCheckpoint(checkpoint, folder, { ...plain, ...run });
  const result = await openCheckpoint(folder);
  const logits = await floatLogits(result);
  await result.close();
  const { quantization_config } = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  return { balanced, logits, balance: quantization_config.balance };
}

it.each(["mistral", "gemma2"])("%s: channels of unlike sizes no longer matter", async (name) => {
  const checkpoint = await openFixture(name);
  const expected = await floatLogits(checkpoint);
  const errorOf = async (model: Checkpoint, run: Partial<QuantizeRun>) =>
    relativeError((await quantized(model, run)).logits, expected);
  const [before, after] = [
    await errorOf(scattered(checkpoint), { balance: false }),
    await errorOf(scattered(checkpoint), {}),
  ];
  expect(after).toBeLessThan(0.6 * before);
  // As good as what was never scattered.
  expect(after).toBeLessThan(1.2 * (await errorOf(checkpoint, {})));
});

it("is what data-free quantization does unless told otherwise", async () => {
  const checkpoint = await openFixture("llama-linear");
  const calibrate = { ids, gradientTokens: 0 };
  const balance = { exponent: 0.5, tokens: 504 };
  expect(await quantized(checkpoint, {})).toMatchObject({ balanced: true, balance });
  expect(await quantized(checkpoint, { balance: true, calibrate })).toMatchObject({
    balanced: true,
    balance,
  });
  const residual = 4;
  const compensated = { ...calibrate, compensation: { channels: uniformShares(64), blend: 0.1 } };
  for (const run of [{ residual }, { residual, calibrate: compensated }] as const) {
    const expected = { balanced: true, balance: { exponent: 0.375 } };
    expect(await quantized(checkpoint, run)).toMatchObject(expected);
  }
  for (const run of [{ balance: false }, { calibrate }, { scheme: "f32" }]) {
    const { balanced, balance } = await quantized(checkpoint, run);
    expect([balanced, balance]).toEqual([false, undefined]);
  }
});

it("does not begin where the result has no place", async () => {
  const checkpoint = await openFixture("llama-linear");
  const seen: string[] = [];
  const run: QuantizeRun = { ...plain, onProgress: ({ phase }) => seen.push(phase) };
  await expect(quantizeCheckpoint(checkpoint, join(models, "mistral"), run)).rejects.toThrow(/is not empty/);
  expect(seen).toEqual([]);
  const controller = new AbortController();
  const folder = join(temporaryFolder(), "model");
  const stop: QuantizeRun = { ...plain, signal: controller.signal, onProgress: () => controller.abort() };
  await expect(quantizeCheckpoint(checkpoint, folder, stop)).rejects.toThrow(/abort/i);
  expect(existsSync(`${folder}.partial`)).toBe(false);
});
