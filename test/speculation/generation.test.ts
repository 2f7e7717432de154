import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { nodeRowFetcher } from "../../src/backends/wasm/workers.node.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { parseShares } from "../../src/compensation/settings.ts";
import type { GenerateOptions, GenerationResult } from "../../src/engine/generation.ts";
import { Model } from "../../src/engine/model.ts";
import { quantizeCheckpoint } from "../../src/engine/quantize/quantize.node.ts";
import { UsageError } from "../../src/errors.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { speculationModes } from "../../src/speculation/mode.ts";
import { writeTinyLlama } from "../cli/tinyLlama.ts";

const PROMPT = "Once upon a time, upon a time";
const drafting = speculationModes.filter((mode) => mode !== "off" && mode !== "uncompensated");
const folder = mkdtempSync(join(tmpdir(), "halftone-speculation-"));
let model: Model;
let plain: GenerationResult;

beforeAll(async () => {
  await writeTinyLlama(join(folder, "float"));
  const source = await openCheckpoint(join(folder, "float"));
  await quantizeCheckpoint(source, join(folder, "quantized"), { scheme: "nuq-4", threads: 1 });
  await source.close();
  const checkpoint = await openCheckpoint(join(folder, "quantized"));
  model = await Model.load(checkpoint, await openWasm(), { activations: "float" });
  await checkpoint.close();
  plain = await generate({ speculate: "off", maxTokens: 60 });
});
afterAll(() => {
  model.dispose();
  rmSync(folder, { recursive: true });
});

function generate(options: GenerateOptions): Promise<GenerationResult> {
  return model.generate(PROMPT, { ignoreEos: true, ...options }).result;
}

it.each(drafting)("%s: budgets end inside bursts, at the context too", async (speculate) => {
  for (const maxTokens of [1, 2, 3, 4, 5, 6, 7, 11, 24, 60]) {
    for (const draft of [undefined, 1, 4]) {
      const answer = await generate({ speculate, draft, maxTokens });
      expect(answer.tokens).toEqual(plain.tokens.slice(0, maxTokens));
      expect(answer.finishReason).toBe("length");
    }
  }
  const [all, drafted] = [await generate({ speculate: "off" }), await generate({ speculate })];
  expect(drafted.tokens).toEqual(all.tokens);
  expect(drafted.promptTokens + drafted.completionTokens).toBe(model.context);
  expect(plain).not.toHaveProperty("speculation");
  expect(drafted.speculation).toMatchObject({ drafted: expect.any(Number), accepted: expect.any(Number) });
});

it.each(drafting)("%s: stop strings end inside bursts", async (speculate) => {
  const { text } = plain;
  for (let at = 3; at < text.length - 4; at += 17) {
    const stop = [text.slice(at, at + 4)];
    const expected = await generate({ speculate: "off", stop });
    const { text: cut, tokens, finishReason } = await generate({ speculate, draft: 5, stop });
    expect({ cut, tokens, finishReason }).toEqual({
      cut: expected.text,
      tokens: expected.tokens,
      finishReason: "stop",
    });
  }
});

it.each(drafting)("%s: aborted inside a burst, what came out stands", async (speculate) => {
  for (const pieces of [1, 2, 3, 5, 8]) {
    const controller = new AbortController();
    const options = { speculate, draft: 6, ignoreEos: true, signal: controller.signal };
    const answer = model.generate(PROMPT, options);
    let seen = "";
    let count = 0;
    for await (const piece of answer) {
      seen += piece;
      if (++count === pieces) controller.abort();
    }
    const result = await answer.result;
    expect(result.finishReason).toBe("abort");
    expect(result.text).toBe(seen);
    expect(result.tokens).toEqual(plain.tokens.slice(0, result.tokens.length));
    expect(result.tokens.length).toBeLessThan(plain.tokens.length);
  }
});

it("draws the same for a seed with auto as without", async () => {
  const sampling = { temperature: 1.2, topK: 20, seed: 5, maxTokens: 50 };
  const off = await generate({ ...sampling, speculate: "off" });
  expect((await generate({ ...sampling, speculate: "auto" })).tokens).toEqual(off.tokens);
});

it("uncompensated: drafts without the residual, the answer as with it", async () => {
  const source = await openCheckpoint(join(folder, "float"));
  const residual = join(folder, "residual");
  await quantizeCheckpoint(source, residual, { scheme: "nuq-2", residual: 4, threads: 1 });
  await source.close();
  const answers = [];
  const drawn = { store: "file", select: "random", channels: parseShares("100,0,1024,300", "") } as const;
  for (const [compensation, modes] of [
    [{}, ["off", "uncompensated", "w4a8", "auto"]],
    [drawn, ["off", "uncompensated", "w4a8", "auto"]],
    [false, ["off", "ngram"]],
  ] as const) {
    const checkpoint = await openCheckpoint(residual);
    const compensated = await Model.load(checkpoint, await openWasm({ fetchRows: nodeRowFetcher }), {
      activations: "float",
      compensation,
    });
    for (const speculate of modes) {
      const options = { speculate, maxTokens: 60, ignoreEos: true, draft: 3 };
      const { tokens, speculation } = await compensated.generate(PROMPT, options).result;
      answers.push(tokens.join(" "));
      if (speculate === "uncompensated") expect(speculation!.drafted).toBeGreaterThan(0);
    }
    compensated.dispose();
    await checkpoint.close();
  }
  for (const own of [answers.slice(0, 4), answers.slice(4, 8), answers.slice(8)]) {
    expect(own).toEqual(own.map(() => own[0]));
  }
  expect(new Set(answers).size).toBe(3);
});

it("says what is wrong with its options", async () => {
  await expect(generate({ speculate: "w4a8", draft: 9 })).rejects.toThrow(
    /the draft length is 9; give 1 to 8/,
  );
  const checkpoint = await openCheckpoint(join(folder, "quantized"));
  const rounding = await Model.load(checkpoint, await openWasm(), { activations: "int8" });
  await checkpoint.close();
  const answer = rounding.generate(PROMPT, { speculate: "w4a8" }).result;
  await expect(answer).rejects.toThrow(UsageError);
  const bare = rounding.generate(PROMPT, { speculate: "uncompensated" }).result;
  await expect(bare).rejects.toThrow(/quantize with --residual/);
  rounding.dispose();
});
