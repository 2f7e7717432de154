import { readdirSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { cli } from "../../src/cli/cli.ts";
import { halftone } from "./halftone.ts";
import { CONTEXT, writeTinyLlama } from "./tinyLlama.ts";

let folder: string;
let model: string;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "halftone-bad-"));
  model = at("tiny");
  await writeTinyLlama(model);
  await mkdir(at("empty"));
  await writeFile(at("ids.json"), "[1, 2, 3]");
  await writeFile(at("text.txt"), "too short");
});
afterAll(() => rm(folder, { recursive: true }));

/** In this process, where hundreds of mistakes cost what one program's start does. */
async function refused(args: readonly string[], environment: Record<string, string> = {}): Promise<string> {
  let [stdout, stderr] = ["", ""];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => (stdout += text) === "");
  vi.spyOn(process.stderr, "write").mockImplementation((text) => (stderr += text) === "");
  const code = await cli(args, environment).finally(() => vi.restoreAllMocks());
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^halftone: [^\n]+\n$/);
  expect(stderr).not.toContain("unexpected error");
  return stderr;
}

const MODEL = "{model}";
test.each<[args: string[], message: string, environment?: Record<string, string>]>([
  [["rum"], "did you mean run?"],
  [["frobnicate"], "see halftone --help"],
  [["help", "quantise"], "did you mean quantize?"],
  [["run"], "run needs MODEL"],
  [["run", "", "p"], "run needs MODEL"],
  [["run", "m", "one", "two"], 'does not take "two"'],
  [["run", "m", "p", "--topk", "3"], "did you mean --top-k?"],
  [["run", "m", "p", "--zzz"], "see halftone run --help"],
  [["run", "m", "p", "-x"], "no flag -x"],
  [["run", "m", "p", "--max-tokens"], "--max-tokens needs a value"],
  [["run", "m", "p", "--max-tokens", "--raw"], "--max-tokens needs a value"],
  [["run", "m", "p", "--max-tokens", "0"], "a whole number from 1 on"],
  [["run", "m", "p", "--threads", "1e9"], "from 1 to 256"],
  [["run", "m", "p", "--threads", "0x10"], "from 1 to 256"],
  [["run", "m", "p", "--top-p", "0"], "a number above 0, at most 1"],
  [["run", "m", "p", "--temperature", "-1"], "--temperature"],
  [["run", "m", "p", "--logit-bias", "5"], "ID=BIAS"],
  [["run", "m", "p", "--backend=cuda"], "one of wasm, reference"],
  [["run", "m", "p", "--json=maybe"], "1 or 0"],
  [["run", "m", "p"], "HALFTONE_TOP_K", { HALFTONE_TOP_K: "many" }],
  [["run", MODEL, ""], "the prompt is empty"],
  [["run", MODEL, "p", "--raw", "--system", "s"], "--system needs a chat template"],
  [["run", MODEL, "p", "--context", String(CONTEXT + 1)], `1 to ${CONTEXT}`],
  [["run", MODEL, "word ".repeat(CONTEXT)], "shorten the prompt or raise --context"],
  [["run", "./nowhere", "p"], "no such file or folder"],
  [["run", "nowhere.gguf", "p"], "no such file or folder"],
  [["run", "npm:no-such-package", "p"], "npm install no-such-package"],
  [["inspect", "{folder}/empty"], "no config.json"],
  [["quantize", MODEL], "-o PATH is missing"],
  [["quantize", MODEL, "-o", "{folder}/out", "--scheme", "nuk-4"], "nuk-4"],
  [["quantize", MODEL, "-o", "{folder}/out", "--embedding-scheme", "nuq-9"], "nuq-9"],
  [["quantize", "./nowhere", "-o", MODEL], "is not empty"],
  [["quantize", "./nowhere", "-o", "{folder}/out", "--rows", "5%"], "--rows needs a budget"],
  [["quantize", "./nowhere", "-o", "{folder}/out", "--bits", "3", "--memory", "1MB"], "give one"],
  [["quantize", "./nowhere", "-o", "{folder}/out", "--blend", "0.5"], "--blend needs --for-compensation"],
  [["quantize", MODEL, "-o", "{folder}/out", "--tune-tokens", "512"], "--tune-tokens needs --tune-steps N"],
  [["quantize", MODEL, "-o", "{folder}/out", "--tune-steps", "1", "--residual", "4"], "exclude each other"],
  [["quantize", MODEL, "-o", "{folder}/out", "--tune-steps", "0"], "--tune-steps is"],
  [
    ["quantize", MODEL, "-o", "{folder}/out", "--tune-steps", "2", "--tune-text", "{folder}/none"],
    "--tune-text",
  ],
  [
    ["quantize", MODEL, "-o", "{folder}/out", "--calibrate", "own", "--calibrate", "{folder}/text.txt"],
    "--calibrate own is the model's own text instead of files",
  ],
  [["quantize", MODEL, "-o", "{folder}/out", "--calibrate", "./own"], "--calibrate ./own: no such file"],
  [["quantize", "{folder}/empty", "-o", "{folder}/out"], "no config.json"],
  [["convert", MODEL, "-o", "{folder}/text.txt/out"], "cannot be written"],
  [["perplexity", MODEL], "--text FILE is missing"],
  [["perplexity", MODEL, "--text", "{folder}/nowhere"], "no such file"],
  [["perplexity", MODEL, "--text", "{folder}/empty"], "a folder"],
  [["perplexity", MODEL, "--text", "{folder}/text.txt"], "context 512: this model takes"],
  [["perplexity", MODEL, "--text", "{folder}/text.txt", "--context", "64"], "shorter than one window"],
  [["logits", MODEL, "-o", "{folder}/out"], "--ids FILE is missing"],
  [["logits", MODEL, "--ids", "{folder}/text.txt", "-o", "{folder}/out"], "is not JSON"],
  [["logits", MODEL, "--ids", "{folder}/ids.json", "-o", "{folder}/empty"], "is a folder"],
  [["logits", MODEL, "--ids", "{folder}/ids.json", "-o", "{folder}/nowhere/out"], "cannot be written"],
  [["bench", MODEL, "--threads", "1,x"], "--threads"],
  [["bench", MODEL, "--threads", "1", "--decode-tokens", "999"], `context is ${CONTEXT}`],
  [["tune", "./nowhere", "-o", "{folder}/empty"], "is a folder"],
  [["palette", "--plot", "{folder}/nowhere/out"], "its folder does not exist"],
  [["sensitivities", "./nowhere", "-o", "{folder}/text.txt/out"], "its folder is a file"],
  [["plan", "./nowhere", "--bits", "3", "-o", ""], "name another file"],
  [["plan", "./nowhere", "--bits", "3", "--plot", "{folder}/empty"], "is a folder"],
  [["plan", "./nowhere", "--frontier", "--plot", "{folder}/empty"], "is a folder"],
  [["plan", MODEL, "--bits", "3", "--sensitivities", ""], "no such file"],
  [["pull", "nowhere"], "OWNER/NAME"],
])("%j: %s", async (args, message, environment) => {
  const here = args.map((arg) => (arg === MODEL ? model : arg.replace("{folder}", folder)));
  expect(await refused(here, { HALFTONE_THREADS: "1", ...environment })).toContain(message);
  expect(readdirSync(folder).filter((name) => name.startsWith("out"))).toEqual([]);
});

test.each([
  ["[]", "no array"],
  ['{"ids": []}', "no array"],
  ["[1, -2]", "entry 1"],
  ["[1, 2.5]", "entry 1"],
  ["[6400]", "end at 6399"],
  [
    JSON.stringify(Array(CONTEXT + 1).fill(1)),
    `bad.json: holds ${CONTEXT + 1} token ids; this model takes at most ${CONTEXT}`,
  ],
])("logits of %s", async (ids, message) => {
  await writeFile(at("bad.json"), ids);
  const args = ["logits", model, "--ids", at("bad.json"), "-o", at("out"), "--threads", "1"];
  expect(await refused(args)).toContain(message);
});

test("weights that were cut or altered", async () => {
  const damaged = at("damaged");
  const weights = join(damaged, "model.safetensors");
  await cp(model, damaged, { recursive: true });
  const whole = await readFile(weights);
  const headerEnd = 8 + Number(whole.readBigUInt64LE(0));
  for (const size of [0, 7, 8, 100, headerEnd - 1, headerEnd, whole.length - 1]) {
    await writeFile(weights, whole);
    await truncate(weights, size);
    for (const args of [
      ["run", damaged, "hi", "--threads", "1"],
      ["quantize", damaged, "-o", at("out")],
    ]) {
      expect(await refused(args)).toContain("model.safetensors");
    }
  }
  const altered = Uint8Array.from(whole);
  altered.set(new TextEncoder().encode('{"a":'), 8);
  await writeFile(weights, altered);
  expect(await refused(["run", damaged, "hi"])).toContain("model.safetensors");
  await writeFile(weights, whole);
  await writeFile(join(damaged, "config.json"), '{"model_type": "mamba"}');
  expect(await refused(["run", damaged, "hi"])).toContain("mamba");
  await writeFile(join(damaged, "config.json"), "{");
  expect(await refused(["run", damaged, "hi"])).toContain("config.json");
  expect(readdirSync(folder)).not.toContain("out.partial");
});

test("--debug adds the stack", async () => {
  const [plain, debug] = await Promise.all([
    halftone(["run", "./nowhere", "p"]),
    halftone(["run", "./nowhere", "p"], { env: { HALFTONE_DEBUG: "1" } }),
  ]);
  expect(plain.stderr).toMatch(/^halftone: [^\n]+\n$/);
  expect(debug.stderr).toMatch(/^halftone: [^\n]+\nUsageError: [^\n]+\n {4}at /);
  expect([plain.code, debug.code]).toEqual([1, 1]);
});
