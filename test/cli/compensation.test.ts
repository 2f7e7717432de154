import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { blendOf, type ChannelShares } from "../../src/compensation/settings.ts";
import { quantizeCheckpoint } from "../../src/engine/quantize/quantize.node.ts";
import { halftone, halftoneJson } from "./halftone.ts";
import { writeTinyLlama } from "./tinyLlama.ts";

const folder = mkdtempSync(join(tmpdir(), "halftone-compensated-"));
const model = join(folder, "model");
const cache = join(folder, "cache");
const env = { XDG_CACHE_HOME: cache };

beforeAll(async () => {
  await writeTinyLlama(join(folder, "float"));
  const float = await openCheckpoint(join(folder, "float"));
  // One shape is tuned in a second.
  const choice = [0, 1].map((i) => ({ layers: [`model.layers.${i}.mlp.down_proj.weight`], option: "nuq-2" }));
  const run = { scheme: "f32", embeddingScheme: "f32", choice, residual: 4, threads: 1 } as const;
  await quantizeCheckpoint(float, model, run);
  await float.close();
  writeFileSync(
    join(folder, "text"),
    "Once upon a time there was a model whose weights were rounded. ".repeat(99),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

const perplexity = async (...flags: string[]) => {
  const text = ["--text", join(folder, "text"), "--context", "64", "--windows", "1"];
  return (await halftoneJson(["perplexity", model, ...text, ...flags], { env })).perplexity;
};

test("tune --slowdown keeps channels with the policy map, and models of these layers take them", async () => {
  const inFile = ["--residual-store", "file"];
  const tuned = await halftone(["tune", model, "--slowdown", "100%", ...inFile, "--json"], { env });
  expect(tuned.code, tuned.stderr).toBe(0);
  const [entry] = JSON.parse(tuned.stdout).compensation;
  expect(entry).toMatchObject({ slowdown: 1, channels: { down: expect.any(Number) }, readers: 1 });
  expect(entry.layers).toBe("4 bits in the file, 2 inputs: down 32x64");
  const [file] = readdirSync(join(cache, "halftone")).filter((name) => name.startsWith("policy-"));
  const map = JSON.parse(readFileSync(join(cache, "halftone", file), "utf8"));
  expect(map.compensation).toEqual([entry]);
  const take = async (down: number) => {
    const compensation = [{ ...entry, channels: { ...entry.channels, down } }];
    writeFileSync(join(cache, "halftone", file), JSON.stringify({ ...map, compensation }));
    return perplexity(...inFile);
  };
  const without = await perplexity("--no-compensation");
  const most = await perplexity("--channels", "1024");
  expect(most).not.toBe(without);
  expect(await take(1024)).toBe(most);
  expect(await take(0)).toBe(without);
  // Rows in memory were not tuned.
  const usual = await perplexity("--channels", "32");
  expect(usual).not.toBe(without);
  expect(await perplexity()).toBe(usual);
  expect(await perplexity("--select", "random")).not.toBe(usual);
  expect(await perplexity("--channels", "0,0,0,1024", ...inFile)).toBe(most);
});

test("quantize --for-compensation calibrates for so many channels of each kind, blended as its bits say", async () => {
  const source = join(folder, "float");
  const text = join(folder, "text");
  const args = ["--calibrate", text, "--calibration-tokens", "1024", "--scheme", "nuq-2", "--residual", "4"];
  const shares = ["--for-compensation", "32,64,128,1024", "--no-balance"];
  const made = await halftone(["quantize", source, "-o", join(folder, "cli"), ...args, ...shares], { env });
  expect(made.code, made.stderr).toBe(0);
  const quantized = async (name: string, channels: ChannelShares, blend: number) => {
    const float = await openCheckpoint(source);
    const calibrate = {
      texts: [readFileSync(text, "utf8")],
      tokens: 1024,
      compensation: { channels, blend },
    };
    const run = { scheme: "nuq-2", residual: 4, balance: false, threads: 1, calibrate } as const;
    await quantizeCheckpoint(float, join(folder, name), run);
    await float.close();
    return readFileSync(join(folder, name, "model.safetensors"));
  };
  const bytes = readFileSync(join(folder, "cli", "model.safetensors"));
  const channels = { qkv: 32, o: 64, gateUp: 128, down: 1024 };
  expect(bytes.equals(await quantized("same", channels, blendOf(2)))).toBe(true);
  expect(bytes.equals(await quantized("other", { ...channels, down: 32 }, blendOf(2)))).toBe(false);
});

test("every verb that runs a model asks for its residual; --no-compensation does not", async () => {
  rmSync(join(model, "residual.safetensors"));
  const verbs = [
    ["run", model, "Hello", "--max-tokens", "2"],
    ["chat", model, "--max-tokens", "2"],
    ["perplexity", model, "--text", join(folder, "text"), "--context", "64", "--windows", "1"],
    ["bench", model, "--threads", "1", "--prompt-tokens", "2", "--decode-tokens", "2"],
  ];
  await Promise.all(
    verbs.map(async (verb) => {
      const { code, stderr } = await halftone(verb, { env, stdin: "Hello\n" });
      expect(code, verb[0]).not.toBe(0);
      expect(stderr).toMatch(/names residual.safetensors, which is not beside it.*--no-compensation/);
      const without = await halftone([...verb, "--no-compensation"], { env, stdin: "Hello\n" });
      expect(without, verb[0]).toMatchObject({ code: 0 });
    }),
  );
});
