import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { load, openCheckpoint, type QuantizeRun, quantizeCheckpoint, UsageError } from "../src/node.ts";
import { writeTinyLlama } from "./cli/tinyLlama.ts";

it("quantizes a model and answers with it, by what the package exports alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "halftone-node-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [original, quantized] = [join(folder, "model"), join(folder, "model-3bit")];
  await writeTinyLlama(original);
  const checkpoint = await openCheckpoint(original);
  onTestFinished(() => checkpoint.close());
  const phases = new Set<string>();
  const run: QuantizeRun = {
    scheme: "tcq-s-3",
    calibrate: { texts: ["Once upon a time there was a tiny model. ".repeat(20)], sequenceLength: 64 },
    threads: 1,
    onProgress: ({ phase }) => phases.add(phase),
  };
  const result = await quantizeCheckpoint(checkpoint, quantized, run);
  expect(result).toMatchObject({ folder: quantized, balanced: false });
  expect(result.linearBitsPerWeight).toBeGreaterThan(3);
  expect(result.linearBitsPerWeight).toBeLessThan(4.5);
  expect([...phases]).toEqual(expect.arrayContaining(["gradients", "observe", "round"]));
  await expect(quantizeCheckpoint(checkpoint, quantized, run)).rejects.toThrow(UsageError);

  const model = await load(quantized, { threads: 1 });
  onTestFinished(() => model.dispose());
  const { completionTokens } = await model.generate("Hello", { maxTokens: 4, logitBias: { 2: -Infinity } })
    .result;
  expect(completionTokens).toBe(4);
});
