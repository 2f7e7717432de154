/**
 * What speculation keeps and low precision loses (QSPEC's Table 3): the verifier, speculation, and the drafts' reading
 * alone, side by side. LAMBADA: share of last words found greedily. GSM8K: share of right answers, of answers that are
 * the verifier's word for word, and of tokens before the first that is not.
 *
 * node bench/fidelity.ts MODEL [--json] [--lambada FILE] [--gsm8k FILE] [--items 200] [--tokens 96] [--threads 1]
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { encodePair } from "../src/engine/evaluate/pair.ts";
import { tasks } from "../src/engine/evaluate/tasks.ts";
import type { Reading } from "../src/engine/reading.ts";
import { Runner } from "../src/engine/runner.ts";
import { load } from "../src/node.ts";
import { fixedPolicy } from "../src/speculation/policy.ts";
import { readingDrafter } from "../src/speculation/readingDrafter.ts";
import { Speculator } from "../src/speculation/speculator.ts";
import { growTogether } from "../src/speculation/together.ts";
import { table } from "./measure.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    lambada: { type: "string" },
    gsm8k: { type: "string" },
    items: { type: "string", default: "200" },
    tokens: { type: "string", default: "96" },
    threads: { type: "string", default: "1" },
  },
});

/** A way to answer: the reading that decides, and the one that drafts for it. */
interface Way {
  readonly name: string;
  readonly reading: Reading;
  readonly draft?: Reading;
}

const ways: readonly Way[] = [
  { name: "W4A16", reading: { activations: "float" } },
  { name: "W4A8 drafts, W4A16", reading: { activations: "float" }, draft: { activations: "int8" } },
  { name: "W4A4 drafts, W4A16", reading: { activations: "float" }, draft: { activations: "int4" } },
  { name: "W4A8 alone", reading: { activations: "int8" } },
  { name: "W4A4 alone", reading: { activations: "int4" } },
];
const DRAFT = 4;

const model = await load(positionals[0], {
  threads: Number(flags.threads),
  activations: "float",
  context: 1024,
});
const items = Number(flags.items);
const answerers = ways.map(({ reading, draft }) => {
  const runner = new Runner(model.spec, model.weights, model.backend, {
    ...{ sequences: 1, context: 1024, chunk: 64 },
    reading,
  });
  const drafters = draft ? [readingDrafter("draft", runner, draft)] : [];
  return async (prompt: readonly number[], count: number) => {
    const speculator = new Speculator(runner, fixedPolicy(drafters, DRAFT));
    const { answers } = await growTogether(runner, [prompt], count, speculator);
    return answers[0];
  };
});

const report: Record<string, Record<string, unknown>[]> = {};
if (flags.lambada) report.lambada = await lambada(await readFile(flags.lambada, "utf8"));
if (flags.gsm8k) report.gsm8k = await gsm8k(await readFile(flags.gsm8k, "utf8"));
model.dispose();
if (flags.json) console.log(JSON.stringify({ model: positionals[0], ...report }, null, 2));
else {
  for (const [name, rows] of Object.entries(report)) {
    console.log(`\n${name}`);
    const header = Object.keys(rows[0]);
    const shown = (value: unknown) =>
      typeof value === "number" ? String(Number(value.toFixed(4))) : String(value);
    console.log(
      table(
        header,
        rows.map((row) => header.map((key) => shown(row[key]))),
      ),
    );
  }
}

async function lambada(text: string) {
  const parsed = tasks.lambada.parse(flags.lambada!, text, undefined, items);
  const right = ways.map(() => 0);
  for (const { context, continuations } of parsed) {
    const pair = encodePair(model.tokenizer, context, continuations[0]);
    const wanted = pair.continuation.join(" ");
    for (const [i, answer] of answerers.entries()) {
      const found = await answer(pair.context.slice(-900), pair.continuation.length);
      if (found.join(" ") === wanted) right[i]++;
    }
  }
  return ways.map(({ name }, i) => ({ name, ...share("accuracy", right[i], parsed.length) }));
}

async function gsm8k(text: string) {
  const lines = text.trim().split("\n").slice(0, items);
  const count = Number(flags.tokens);
  const sums = ways.map(() => ({ right: 0, same: 0, prefix: 0 }));
  for (const line of lines) {
    const { question, answer: solution } = JSON.parse(line);
    const messages = [{ role: "user", content: question }];
    const prompt = model.hasChatTemplate ? model.encodeChat(messages) : model.encodePrompt(question);
    let own: readonly number[] | undefined;
    for (const [i, answer] of answerers.entries()) {
      const ids = await answer(prompt.slice(-900), count);
      own ??= ids;
      const differs = ids.findIndex((id, at) => id !== own![at]);
      if (differs < 0) sums[i].same++;
      sums[i].prefix += differs < 0 ? 1 : differs / count;
      if (lastNumber(model.tokenizer.decode(untilEnd(ids))) === lastNumber(solution)) sums[i].right++;
    }
  }
  return ways.map(({ name }, i) => ({
    name,
    ...share("right", sums[i].right, lines.length),
    sameAnswers: sums[i].same / lines.length,
    tokensBeforeDifference: sums[i].prefix / lines.length,
  }));
}

function untilEnd(ids: readonly number[]): readonly number[] {
  const end = ids.findIndex((id) => model.tokenizer.eosIds.has(id));
  return end < 0 ? ids : ids.slice(0, end);
}

function lastNumber(text: string): number | undefined {
  const found = text.replaceAll(",", "").match(/-?\d+(\.\d+)?/g);
  return found ? Number(found.at(-1)) : undefined;
}

/** A share with the 95% interval of Wilson (1927). */
function share(name: string, hits: number, total: number) {
  const [p, z] = [hits / total, 1.96];
  const middle = (p + z ** 2 / (2 * total)) / (1 + z ** 2 / total);
  const reach = (z / (1 + z ** 2 / total)) * Math.sqrt((p * (1 - p)) / total + z ** 2 / (4 * total ** 2));
  return { [name]: p, from: Math.max(0, middle - reach), to: middle + reach, items: total };
}
