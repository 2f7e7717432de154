/**
 * Speculation: speed against the verifier alone in the same run, acceptance over draft length (QSPEC's Figure 5),
 * seconds per token split into drafts and verification (Figure 4), and whether every token is the verifier's own.
 *
 * node bench/speculation.ts MODEL [--json] [--data FILE] [--prompts 8] [--tokens 96] [--batch 1,8] [--threads 1]
 *   [--verifier float,int8] [--drafts 2,3,4,5,6] [--rounds 2] [--exits 4,6] [--plot FILE]
 *
 * --data: JSON Lines; `question`, `prompt` or `text` of each is asked through the chat template where there is one.
 * --exits: also draft with so many of the first layers alone.
 * --plot: SVG of the float verifier's acceptance and seconds per token, at the first batch.
 */
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import type { ActivationPrecision } from "../src/backends/operation.ts";
import type { Model } from "../src/engine/model.ts";
import type { Reading } from "../src/engine/reading.ts";
import { load } from "../src/node.ts";
import { drawCharts, type Series } from "../src/plot/chart.ts";
import type { Drafter } from "../src/speculation/drafter.ts";
import { ngramDrafter } from "../src/speculation/ngram.ts";
import { adaptivePolicy, type DraftPolicy, fixedPolicy } from "../src/speculation/policy.ts";
import { readingDrafter } from "../src/speculation/readingDrafter.ts";
import { Speculator } from "../src/speculation/speculator.ts";
import type { SpeculationStatistics } from "../src/speculation/statistics.ts";
import { growTogether } from "../src/speculation/together.ts";
import { numbers, table } from "./measure.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    data: { type: "string" },
    prompts: { type: "string", default: "8" },
    tokens: { type: "string", default: "96" },
    batch: { type: "string", default: "1,8" },
    threads: { type: "string", default: "1" },
    verifier: { type: "string", default: "float,int8" },
    drafts: { type: "string", default: "2,3,4,5,6" },
    rounds: { type: "string", default: "2" },
    exits: { type: "string", default: "" },
    plot: { type: "string" },
  },
});

const questions = [
  "What is the capital of France, and what is it famous for?",
  "Write a short story about a fox who learns to swim.",
  "List five fruits and say what colour each one has.",
  "Explain why the sky is blue to a child.",
  "Repeat this sentence three times: the quick brown fox jumps over the lazy dog.",
  "Write a Python function that returns the largest number of a list.",
  "Translate into German: good morning, how are you today?",
  "A farmer has 17 sheep and buys 5 more, then sells 8. How many are left? Think step by step.",
];

/** What is measured: how drafts are made; `length` undefined where it adapts. */
interface Way {
  readonly name: string;
  readonly length?: number;
  readonly policy: () => DraftPolicy;
}

interface Result {
  readonly verifier: ActivationPrecision;
  readonly batch: number;
  readonly way: string;
  readonly draft: number;
  tokens: number;
  seconds: number;
  drafted: number;
  accepted: number;
  verifications: number;
  draftSeconds: number;
  verifySeconds: number;
  /** Tokens that differ from the verifier's own. */
  wrong: number;
  /** Held by the backend, steps of all ways measured so far included. */
  bytes: number;
}

const count = Number(flags.tokens);
const results: Result[] = [];
for (const verifier of flags.verifier.split(",") as ActivationPrecision[]) {
  for (const batch of numbers(flags.batch)) results.push(...(await measure(verifier, batch)));
}
const plainOf = ({ verifier, batch }: Result) =>
  results.find((other) => other.verifier === verifier && other.batch === batch && other.way === "off")!;
const speedup = (result: Result) =>
  plainOf(result).seconds / plainOf(result).tokens / (result.seconds / result.tokens);

if (flags.plot) await writeFile(flags.plot, plot());
if (flags.json) {
  const rows = results.map((result) => ({
    ...result,
    tokensPerSecond: result.tokens / result.seconds,
    acceptanceRate: result.drafted > 0 ? result.accepted / result.drafted : null,
    tokensPerVerify: 1 + result.accepted / result.verifications,
    speedup: speedup(result),
  }));
  console.log(
    JSON.stringify({ model: positionals[0], threads: Number(flags.threads), results: rows }, null, 2),
  );
} else {
  const header = [
    "verifier",
    "batch",
    "drafts",
    "length",
    "tokens/s",
    "speedup",
    "acceptance",
    "tokens/verify",
  ];
  const rows = results.map((result) => [
    result.verifier,
    String(result.batch),
    result.way,
    result.draft > 0 ? String(result.draft) : "",
    (result.tokens / result.seconds).toFixed(1),
    speedup(result).toFixed(2),
    result.drafted > 0 ? (result.accepted / result.drafted).toFixed(3) : "",
    (1 + result.accepted / result.verifications).toFixed(2),
    ((1000 * result.draftSeconds) / result.tokens).toFixed(2),
    ((1000 * result.verifySeconds) / result.tokens).toFixed(2),
    String(result.wrong),
    (result.bytes / 2 ** 20).toFixed(1),
  ]);
  console.log(table([...header, "draft ms", "verify ms", "wrong", "MB"], rows));
}

async function measure(verifier: ActivationPrecision, batch: number): Promise<Result[]> {
  const model = await load(positionals[0], {
    ...{ threads: Number(flags.threads), activations: verifier },
    ...{ sequences: batch, context: 1024, chunk: Math.max(64, 9 * batch) },
  });
  try {
    const prompts = (await textsOf()).map((text) => encode(model, text).slice(-900 + count));
    const ways = waysOf(model, verifier);
    const found = ways.map(({ name, length = 0 }): Result => {
      const zeros = { tokens: 0, seconds: 0, drafted: 0, accepted: 0, verifications: 0 };
      return {
        verifier,
        batch,
        way: name,
        draft: length,
        ...zeros,
        draftSeconds: 0,
        verifySeconds: 0,
        wrong: 0,
        bytes: 0,
      };
    });
    const policies = ways.map(({ policy }) => policy());
    // Once over, unmeasured: steps are recorded and code is compiled.
    for (const policy of policies) {
      await growTogether(model.runner, prompts.slice(0, batch), 24, new Speculator(model.runner, policy));
    }
    const order = ways.map((_, i) => i);
    for (let round = 0; round < Number(flags.rounds); round++) {
      for (let at = 0; at + batch <= prompts.length; at += batch) {
        const answers: (readonly number[])[] = [];
        for (const i of order) {
          const speculator = new Speculator(model.runner, policies[i]);
          const parts = prompts.slice(at, at + batch);
          const grown = await growTogether(model.runner, parts, count, speculator);
          answers[i] = grown.answers.flat();
          add(found[i], speculator.statistics, grown.seconds, batch * (count - 1));
          found[i].bytes = Math.max(found[i].bytes, model.backend.bytesAllocated);
        }
        for (const i of order) found[i].wrong += answers[i].filter((id, k) => id !== answers[0][k]).length;
        // Back and forth, so that what else the machine does hits all ways alike.
        order.reverse();
      }
    }
    return found;
  } finally {
    model.dispose();
  }
}

function add(result: Result, statistics: SpeculationStatistics, seconds: number, tokens: number): void {
  const { drafted, accepted, tokensPerVerify, draftSeconds, verifySeconds } = statistics;
  result.tokens += tokens;
  result.seconds += seconds;
  result.drafted += drafted;
  result.accepted += accepted;
  result.verifications += tokens / tokensPerVerify;
  result.draftSeconds += draftSeconds;
  result.verifySeconds += verifySeconds;
}

/** The first is the verifier alone. */
function waysOf({ runner }: Model, verifier: ActivationPrecision): Way[] {
  const fixed = (name: string, drafters: Drafter[], length: number): Way => {
    return { name, length, policy: () => fixedPolicy(drafters, length) };
  };
  const exits = flags.exits ? numbers(flags.exits) : [];
  const readings: Record<string, Reading> = {
    w4a8: { ...runner.reading, activations: "int8" },
    w4a4: { ...runner.reading, activations: "int4" },
    ...(runner.reading.compensation ? { uncompensated: { activations: verifier } } : {}),
    ...Object.fromEntries(
      exits.map((layers) => [`exit ${layers}`, { ...runner.reading, activations: "int8", layers }]),
    ),
  };
  const names = Object.keys(readings).filter((name) => name !== "w4a8" || verifier !== "int8");
  const readers = names.map((name) => readingDrafter(name, runner, readings[name]));
  const lasting = readers.filter(({ name }) => !name.startsWith("exit"));
  return [
    { name: "off", policy: () => fixedPolicy([], 1) },
    ...readers.flatMap((reader) =>
      numbers(flags.drafts).map((length) => fixed(reader.name, [reader], length)),
    ),
    fixed("ngram", [ngramDrafter()], 4),
    { name: "auto", policy: () => adaptivePolicy([ngramDrafter(), ...lasting], { rests: true }) },
  ];
}

async function textsOf(): Promise<string[]> {
  if (!flags.data) return questions.slice(0, Number(flags.prompts));
  const lines = (await readFile(flags.data, "utf8")).trim().split("\n").slice(0, Number(flags.prompts));
  return lines.map((line) => {
    const { question, prompt, text } = JSON.parse(line);
    return question ?? prompt ?? text;
  });
}

function encode(model: Model, text: string): number[] {
  return model.hasChatTemplate
    ? model.encodeChat([{ role: "user", content: text }])
    : model.encodePrompt(text);
}

function plot(): string {
  const [{ verifier, batch }] = results;
  const of = (way: string) =>
    results.filter(
      (result) =>
        result.way === way && result.verifier === verifier && result.batch === batch && result.draft > 0,
    );
  const names = ["w4a8", "w4a4", "uncompensated"].filter((name) => of(name).length > 0);
  const lines = (y: (result: Result) => number): Series[] =>
    names.map((name) => ({ name, points: of(name).map((result) => ({ x: result.draft, y: y(result) })) }));
  const milliseconds = (seconds: (result: Result) => number): Series[] => {
    const xs = numbers(flags.drafts);
    const alone = (1000 * plainOf(results[0]).seconds) / plainOf(results[0]).tokens;
    const bound = { name: "the verifier alone", bound: true, points: xs.map((x) => ({ x, y: alone })) };
    return [...lines((result) => (1000 * seconds(result)) / result.tokens), bound];
  };
  const x = { title: "draft length, tokens" };
  return drawCharts([
    {
      title: "Accepted of drafted",
      x,
      y: { title: "acceptance rate" },
      series: lines((r) => r.accepted / r.drafted),
    },
    { title: "Drafting", x, y: { title: "ms per token" }, series: milliseconds((r) => r.draftSeconds) },
    { title: "Verifying", x, y: { title: "ms per token" }, series: milliseconds((r) => r.verifySeconds) },
  ]);
}
