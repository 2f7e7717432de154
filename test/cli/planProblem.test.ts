import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Values } from "../../src/cli/flag.ts";
import { planFlags } from "../../src/cli/flags.ts";
import { plan } from "../../src/cli/plan.ts";
import { printedBy } from "./printedBy.ts";

const problem = {
  layers: [
    { name: "q", weights: 64, sensitivity: 1 },
    { name: "o", weights: 64, sensitivity: 4 },
  ],
  options: [
    { name: "two", bits: 2, distortion: 0.1 },
    { name: "four", bits: 4, distortion: 0.01 },
  ],
  budget: { bits: 3 },
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "halftone-plan-"));
  await writeFile(join(folder, "problem.json"), JSON.stringify(problem));
});
afterAll(() => rm(folder, { recursive: true }));

/** What the verb prints. */
function printed(flags: { problem?: string; output?: string; json?: boolean }): Promise<string> {
  const initial = Object.fromEntries(Object.entries(planFlags).map(([name, flag]) => [name, flag.initial]));
  return printedBy(() => plan({ operands: [], flags: { ...initial, ...flags } as Values<typeof planFlags> }));
}

test("prints the plan as JSON, as a table, and into a file", async () => {
  const path = join(folder, "problem.json");
  const output = join(folder, "plan.json");
  const json = JSON.parse(await printed({ problem: path, json: true }));
  expect(json).toMatchObject({ bits: 3, bytes: 48 });
  expect(json.gap).toBeCloseTo(0, 8);
  expect(json.choice).toEqual([
    { layers: ["q"], option: "two" },
    { layers: ["o"], option: "four" },
  ]);
  expect(await printed({ problem: path })).toMatch(/3\.00 bits per weight, 48 B[\s\S]*\no +four +4\.00\n$/);
  expect(await printed({ problem: path, output })).toMatch(/plan\.json: 2 choices\n/);
  expect(JSON.parse(await readFile(output, "utf8"))).toEqual(json);
});

test("says what is wrong with the file", async () => {
  const path = join(folder, "broken.json");
  await expect(printed({})).rejects.toThrow(/--problem FILE, is missing/);
  await expect(printed({ problem: join(folder, "none.json") })).rejects.toThrow(/no such file/);
  await writeFile(path, '{"layers": [');
  await expect(printed({ problem: path })).rejects.toThrow(/broken\.json: broken JSON/);
  await writeFile(path, JSON.stringify({ ...problem, budget: { bits: 1 } }));
  await expect(printed({ problem: path })).rejects.toThrow(/broken\.json: budget\.bits: .* takes 2$/);
});
