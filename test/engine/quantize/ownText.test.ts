import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { spawnNodeWorker } from "../../../src/backends/wasm/workers.node.ts";
import { sampleText } from "../../../src/engine/ownText.ts";
import { floatDecoder } from "../../../src/engine/quantize/plan.ts";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture } from "../../models/fixture.ts";
import { quantizedBytes } from "./checkpointBytes.ts";

const model = "llama-linear";
const calibrate = { tokens: 320, sequenceLength: 40 };
const run: QuantizeRun = { scheme: "nuq-3", calibrate };

/** What the model of 96 tokens makes up. */
async function ownText(): Promise<number[][]> {
  const checkpoint = await openFixture(model);
  const spec = floatDecoder(checkpoint);
  const backend = await openWasm({ threads: 1, spawn: spawnNodeWorker });
  const length = { sequences: 8, sequenceLength: 40 };
  const text = await sampleText({ spec, checkpoint, backend, ...length, first: 0, seed: 0 });
  backend.dispose();
  return text;
}

describe("a quantization calibrated on the model's own text", () => {
  const compensation = { channels: { qkv: 8, o: 8, gateUp: 8, down: 8 }, blend: 0.3 };
  it.each<[string, number, QuantizeRun]>([
    ["guided by gradients", 3, run],
    [
      "for a compensated model",
      1,
      { scheme: "tcq-s-2", calibrate: { ...calibrate, compensation }, residual: 4 },
    ],
  ])("is that on the same tokens, %s, at %i threads", async (_, threads, run) => {
    const folder = temporaryFolder();
    const given = { ...run, calibrate: { ...run.calibrate, ids: await ownText() } };
    const expected = await quantizedBytes(model, join(folder, "given"), given);
    const own = await quantizedBytes(model, join(folder, "own"), { ...run, threads });
    expect(own.equals(expected)).toBe(true);
  });

  it.each([
    ["sample", 0.1],
    ["round", 0.8],
  ])("goes on after a stop in %s to the same bytes", async (stop, share) => {
    const folder = temporaryFolder();
    const whole = await quantizedBytes(model, join(folder, "whole"), run);
    const controller = new AbortController();
    const onProgress: QuantizeRun["onProgress"] = ({ phase, done, total }) => {
      if (phase === stop && done > share * total) controller.abort();
    };
    const { signal } = controller;
    const cut = join(folder, "cut");
    await expect(quantizedBytes(model, cut, { ...run, signal, onProgress })).rejects.toThrow(/abort/i);
    expect(existsSync(`${cut}.partial`)).toBe(true);
    expect((await quantizedBytes(model, cut, run)).equals(whole)).toBe(true);
  });

  it("tells how far the text is, and is tuned on samples of its own", async () => {
    const told: string[] = [];
    await quantizedBytes(model, join(temporaryFolder(), "a"), {
      ...run,
      tune: { steps: 1, tokens: 64, sequenceLength: 16 },
      onProgress: ({ phase, tensor }) => {
        if (phase === "sample") told.push(tensor);
      },
    });
    expect(told).toContain("sampling text, 100%");
    expect(told).toContain("sampling text");
  });

  it("says what cannot be", async () => {
    const path = join(temporaryFolder(), "a");
    const refused = (calibrate: QuantizeRun["calibrate"], message: RegExp) =>
      expect(quantizedBytes(model, path, { ...run, calibrate })).rejects.toThrow(message);
    await refused({ tokens: 0 }, /calibrate.tokens 0: takes a whole number from 1/);
    await refused(
      { sequenceLength: 129 },
      /calibrate.sequenceLength 129: takes a whole number from 1 to 128/,
    );
    await refused({ texts: [] }, /has no tokenizer/);
  });
});
