import { execFileSync } from "node:child_process";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readTextFile, writeTextFile } from "../../src/cli/files.ts";
import { UsageError } from "../../src/errors.ts";

let folder: string;
const at = (name: string) => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "halftone-files-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

test("a text longer than any string is refused", async () => {
  writeFileSync(at("long.txt"), "");
  truncateSync(at("long.txt"), 2 ** 29);
  const read = readTextFile(at("long.txt"), "--text");
  await expect(read).rejects.toThrow(/^--text .*long\.txt: holds more than \d+ bytes; give a part of it$/);
  await expect(read).rejects.toThrow(UsageError);
});

test("a written file takes an older one's place, and nothing stays beside it", async () => {
  await writeTextFile(at("plan.json"), "older, and longer", "-o");
  const { ino } = statSync(at("plan.json"));
  await writeTextFile(at("plan.json"), "newer", "-o");
  expect(readFileSync(at("plan.json"), "utf8")).toBe("newer");
  expect(statSync(at("plan.json")).ino).not.toBe(ino);
  expect(readdirSync(folder).filter((name) => name.startsWith("plan"))).toEqual(["plan.json"]);
});

test("what cannot be written is told, and nothing stays", async () => {
  const before = readdirSync(folder);
  await expect(writeTextFile(at("long.txt/plan.json"), "{}", "-o")).rejects.toThrow(UsageError);
  expect(readdirSync(folder)).toEqual(before);
});

test.skipIf(process.platform === "win32")("a pipe is written to, and stays one", async () => {
  execFileSync("mkfifo", [at("pipe")]);
  const [text] = await Promise.all([
    readTextFile(at("pipe"), "--text"),
    writeTextFile(at("pipe"), "{}", "-o"),
  ]);
  expect(text).toBe("{}");
  expect(statSync(at("pipe")).isFIFO()).toBe(true);
});
