import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { QuantizeProgress, QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { few, quantizedBytes } from "./checkpointBytes.ts";

const model = "llama-linear";
const calibrate = { ids: few };
const calibrated: QuantizeRun = { scheme: "nuq-3", calibrate };

/** Runs until a share of the weights is done, and aborts. */
async function interrupted(folder: string, run: QuantizeRun, share: number): Promise<void> {
  const controller = new AbortController();
  const onProgress = ({ phase, done, total }: QuantizeProgress) => {
    if (phase !== "balance" && done >= share * total) controller.abort();
  };
  const { signal } = controller;
  await expect(quantizedBytes(model, folder, { ...run, signal, onProgress })).rejects.toThrow(/abort/i);
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(`${folder}.partial`)).toBe(true);
}

/** Weights that were already there when a run computed its first. */
async function resumedBytes(folder: string, run: QuantizeRun): Promise<[Buffer, number]> {
  const seen: number[] = [];
  const bytes = await quantizedBytes(model, folder, { ...run, onProgress: ({ done }) => seen.push(done) });
  return [bytes, seen[0]];
}

describe("a quantization that was stopped", () => {
  it.each([
    ["data-free", { scheme: "nuq-3", balance: false }, 0.3],
    ["balanced", { scheme: "nuq-3" }, 0.3],
    ["in the first layer", calibrated, 0.5],
    ["in the second layer", calibrated, 0.8],
    ["without sequence", { scheme: "tcq-s-2", calibrate: { ...calibrate, sequential: false } }, 0.8],
  ])("goes on, %s, to the same bytes", async (_, run, share) => {
    const folder = temporaryFolder();
    const whole = await quantizedBytes(model, join(folder, "whole"), run);
    await interrupted(join(folder, "cut"), run, share);
    const journal = readFileSync(join(folder, "cut.partial", ".halftone-journal"), "utf8");
    expect(journal.split("\n").length).toBeGreaterThan(2);
    const [bytes] = await resumedBytes(join(folder, "cut"), run);
    expect(bytes.equals(whole)).toBe(true);
    expect(existsSync(join(folder, "cut", ".halftone-journal"))).toBe(false);
  });

  it("tells its own pace, not that of what it took over", async () => {
    const folder = temporaryFolder();
    await interrupted(join(folder, "cut"), calibrated, 0.8);
    const told: QuantizeProgress[] = [];
    await quantizedBytes(model, join(folder, "cut"), { ...calibrated, onProgress: (p) => told.push(p) });
    const before = told.slice(0, told.findIndex(({ phase }) => phase === "observe") + 1);
    expect(before.at(-1)!.done).toBeGreaterThan(0);
    for (const { weightsPerSecond, secondsLeft } of before) {
      expect([weightsPerSecond, secondsLeft]).toEqual([undefined, undefined]);
    }
    expect(told.at(-1)!.weightsPerSecond).toBeGreaterThan(0);
    expect(told.at(-1)!.secondsLeft).toBe(0);
  });

  it("does again what its file no longer holds", async () => {
    const folder = temporaryFolder();
    const whole = await quantizedBytes(model, join(folder, "whole"), calibrated);
    await interrupted(join(folder, "cut"), calibrated, 0.8);
    const file = join(folder, "cut.partial", "model.safetensors.partial");
    const damaged = readFileSync(file);
    damaged.fill(255, damaged.length - 9000);
    writeFileSync(file, damaged);
    const [bytes] = await resumedBytes(join(folder, "cut"), calibrated);
    expect(bytes.equals(whole)).toBe(true);
  });

  it("starts anew with other options, and when asked to", async () => {
    const folder = temporaryFolder();
    const other: QuantizeRun = { scheme: "nuq-3", seed: 1, calibrate };
    for (const [name, run] of [
      ["a", other],
      ["b", { ...calibrated, resume: false }],
    ] as const) {
      const whole = await quantizedBytes(model, join(folder, `whole ${name}`), run);
      await interrupted(join(folder, name), calibrated, 0.8);
      const [bytes] = await resumedBytes(join(folder, name), run);
      expect(bytes.equals(whole)).toBe(true);
    }
  });
});
