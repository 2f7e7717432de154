import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parseArguments } from "../../src/cli/parse.ts";
import { drawMix } from "../../src/cli/planPicture.ts";
import { verbs } from "../../src/cli/verbs.ts";
import { blendOf } from "../../src/compensation/settings.ts";
import { printedBy } from "./printedBy.ts";
import { writeTinyLlama } from "./tinyLlama.ts";

let folder: string;
let model: string;
let known: string[];
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "halftone-plan-"));
  model = at("model");
  await writeTinyLlama(model);
  const kinds = ["q", "k", "v", "o"].map((kind) => `self_attn.${kind}`);
  const layers = [0, 1].flatMap((block) =>
    [...kinds, "mlp.gate", "mlp.up", "mlp.down"].map((kind, i) => ({
      name: `model.layers.${block}.${kind}_proj.weight`,
      sensitivity: 0.1 * (1 + i + block),
    })),
  );
  layers.push({ name: "model.embed_tokens.weight", sensitivity: 3 });
  writeFileSync(at("sensitivities.json"), JSON.stringify({ layers }));
  vi.stubEnv("XDG_CACHE_HOME", at("cache"));
  known = ["--sensitivities", at("sensitivities.json")];
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** Runs a verb in this process; returns what it prints. */
async function call(name: string, ...args: string[]): Promise<string> {
  const verb = verbs.find((each) => each.name === name)!;
  const run = await verb.load();
  return printedBy(() => run(parseArguments(verb, args, { HALFTONE_THREADS: "1" })));
}

test("a plan is drawn, written, and carried out to the byte", async () => {
  const budget = ["--memory", "130kB", "--schemes", "nuq-2,tcq-s-3,vq-2.5,nuq-4", ...known];
  const drawn = await call("plan", model, ...budget, "-o", at("plan.json"), "--plot", at("plan.svg"));
  expect(drawn).toMatch(
    /tokens\/s\npredicted loss [\s\S]*\nblock {5}0\nq [\s\S]*\nembedding [\s\S]*\nscheme/,
  );
  const svg = readFileSync(at("plan.svg"), "utf8");
  expect(svg).toMatch(/^<svg [\s\S]*<title>model\.layers\.1\.mlp\.down_proj\.weight: [\s\S]*<\/svg>\n$/);
  const plan = JSON.parse(readFileSync(at("plan.json"), "utf8"));
  expect(plan.predicted.bytes).toBeLessThanOrEqual(130_000);

  const result = JSON.parse(
    await call("quantize", model, "-o", at("a"), "--plan", at("plan.json"), "--json"),
  );
  expect(result.fileBytes).toBe(plan.predicted.bytes);
  expect(statSync(at("a/model.safetensors")).size).toBe(plan.predicted.bytes);
  // Planned on the way: the same file.
  await call("quantize", model, "-o", at("b"), ...budget);
  const bytes = (name: string) => readFileSync(at(`${name}/model.safetensors`));
  expect(bytes("b").equals(bytes("a"))).toBe(true);
  const answer = JSON.parse(await call("run", at("a"), "Once", "--raw", "--max-tokens", "4", "--json"));
  expect(answer.completionTokens).toBe(4);
});

test("own text calibrates, for a plan and what it is carried out with", async () => {
  const own = ["--calibrate", "own", "--bits", "3", "--schemes", "nuq-2,nuq-3,nuq-4"];
  const plan = JSON.parse(await call("plan", model, ...own, "--sequences", "2", "--json"));
  // With gains less is lost than without.
  const free = JSON.parse(await call("plan", model, ...own.slice(2), "--sequences", "2", "--json"));
  expect(plan.predicted.loss).toBeLessThan(0.95 * free.predicted.loss);
  writeFileSync(at("own.json"), JSON.stringify(plan));
  const carriedOut = ["--plan", at("own.json"), "--calibrate", "own", "--calibration-tokens", "1024"];
  const result = JSON.parse(await call("quantize", model, "-o", at("own"), ...carriedOut, "--json"));
  expect(result.fileBytes).toBe(plan.predicted.bytes);
});

test("calibration for compensation goes by the plan's bits, not by a scheme that nobody named", async () => {
  const plan = JSON.parse(
    await call("plan", model, "--bits", "2.2", "--schemes", "nuq-2", ...known, "--json"),
  );
  writeFileSync(at("low.json"), JSON.stringify(plan));
  const text = [
    "--calibrate",
    "own",
    "--calibration-tokens",
    "1024",
    "--for-compensation",
    "5%",
    "--residual",
    "4",
  ];
  const quantized = async (name: string, ...blend: string[]) => {
    await call("quantize", model, "-o", at(name), "--plan", at("low.json"), ...text, ...blend);
    return readFileSync(at(`${name}/model.safetensors`));
  };
  const usual = await quantized("usual");
  const blend = String(blendOf(plan.predicted.linearBits));
  expect((await quantized("named", "--blend", blend)).equals(usual)).toBe(true);
  expect((await quantized("higher", "--blend", "0.5")).equals(usual)).toBe(false);
});

test("a plan buys residual rows, whatever its schemes are, and is carried out with them", async () => {
  const flags = ["--bits", "2.5", "--rows", "100%", "--schemes", "nuq-2,nuq-3", ...known];
  const plan = JSON.parse(await call("plan", model, ...flags, "--json"));
  expect(plan.compensation.bits).toBe(4);
  writeFileSync(at("rows.json"), JSON.stringify(plan));
  const result = JSON.parse(
    await call("quantize", model, "-o", at("rows"), "--plan", at("rows.json"), "--json"),
  );
  expect(result.fileBytes).toBe(plan.predicted.bytes);
  expect(result.residualBytes).toBeGreaterThan(0);
  const config = JSON.parse(readFileSync(at("rows/config.json"), "utf8")).quantization_config;
  expect(config.residual).toMatchObject(plan.compensation);
});

test("without text, plans and models are for balanced channels, unless the flags say otherwise", async () => {
  const quantized = async (name: string, ...args: string[]) => {
    const result = JSON.parse(await call("quantize", model, "-o", at(name), "--json", ...args));
    const { quantization_config } = JSON.parse(readFileSync(at(`${name}/config.json`), "utf8"));
    expect(quantization_config.balance !== undefined).toBe(result.balanced);
    return { ...result, bytes: readFileSync(at(`${name}/model.safetensors`)) };
  };
  const sensitivityFiles = () =>
    readdirSync(model).filter((name) => name.startsWith("halftone-sensitivities"));
  const before = sensitivityFiles().length;
  const budget = ["--bits", "3", "--sequences", "1", "--schemes", "nuq-2,nuq-3,nuq-4"];
  await call("plan", model, ...budget, "-o", at("balanced.json"));
  expect(sensitivityFiles()).toHaveLength(before + 1);
  const planned = await quantized("c", "--plan", at("balanced.json"));
  const once = await quantized("d", ...budget);
  expect([planned.balanced, once.balanced]).toEqual([true, true]);
  expect(once.plan.model).toEqual(JSON.parse(readFileSync(at("balanced.json"), "utf8")).model);
  expect(once.bytes.equals(planned.bytes)).toBe(true);
  expect(sensitivityFiles()).toHaveLength(before + 1);
  expect(await quantized("e", ...budget, "--no-balance")).toMatchObject({ balanced: false });
  expect(sensitivityFiles()).toHaveLength(before + 2);
  // What compensation takes of the inputs counts less.
  const compensated = await quantized("f", ...budget, "--residual", "4");
  expect(compensated.balanced).toBe(true);
  expect(compensated.bytes.equals(once.bytes)).toBe(false);
  expect(sensitivityFiles()).toHaveLength(before + 2);
});

test("mistakes are explained", async () => {
  writeFileSync(at("broken.json"), "{");
  writeFileSync(at("other.json"), '{"format": "halftone-plan", "version": 1, "choice": 3}');
  const cases: [string[], RegExp][] = [
    [["plan", model, ...known], /nothing to spend; give --bits N, --memory SIZE or --speed N/],
    [["plan", model, "--bits", "3", "--memory", "1MB", ...known], /budgets of their own; give one/],
    [["plan", model, "--memory", "much", ...known], /--memory is "much"; give a size such as 900MB/],
    [
      ["quantize", model, "-o", at("x"), "--memory", "20kB", ...known],
      /20000 bytes are too few.* it takes \d+/,
    ],
    [
      ["quantize", model, "-o", at("x"), "--bits", "1", ...known],
      /1 bits per weight are too few; the least is 1\.5/,
    ],
    [["plan", model, "--bits", "3", "--schemes", "f32", ...known], /f32 does not quantize/],
    [["plan", model, "--bits", "3", "--sensitivities", at("other.json")], /layers: /],
    [["plan", model, "--frontier", "--bits", "3", ...known], /--frontier is over all budgets/],
    [
      ["plan", model, "--bits", "3", "--measure", at("other.json"), ...known],
      /--measure belongs to --frontier/,
    ],
    [["plan", model, "--problem", at("other.json")], /leave out MODEL/],
    [["quantize", model, "-o", at("x"), "--plan", at("broken.json")], /--plan .*broken\.json: broken JSON/],
    [["quantize", model, "-o", at("x"), "--plan", at("other.json")], /other\.json: model: /],
    [
      ["quantize", model, "-o", at("x"), "--plan", at("other.json"), "--bits", "3"],
      /leave out one of the two/,
    ],
  ];
  for (const [[name, ...args], message] of cases) await expect(call(name, ...args)).rejects.toThrow(message);
});

test("fused layers are joined by a line, past those between them", () => {
  const choose = (names: string, option: string) => ({
    layers: names.split(" ").map((name) => `model.layers.0.self_attn.${name}_proj.weight`),
    option,
  });
  const drawn = drawMix([choose("q v", "tcq-s-3.25"), choose("k", "nuq-4"), choose("o", "vq-2.5")]);
  expect(drawn.split("\n").slice(1, 5)).toEqual(["q     3¼┐", "k     4 │", "v     3¼┘", "o     2½"]);
});
