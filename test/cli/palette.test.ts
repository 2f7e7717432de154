import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { palettePlot } from "../../src/cli/palettePlot.ts";
import { halftone } from "./halftone.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "palette-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("--json prints exactly the array, --plot writes an SVG", async () => {
  const file = join(folder, "palette.svg");
  const args = ["palette", "--schemes", "nuq-2, vq-1.5", "--sequences", "300", "--json", "--plot", file];
  const { code, stdout } = await halftone(args);
  expect(code).toBe(0);
  const results = JSON.parse(stdout);
  expect(results.map(Object.keys)).toEqual(
    [0, 1].map(() => ["quantizer", "bits", "distortion", "bound", "sequences"]),
  );
  expect(results[1]).toMatchObject({ quantizer: "vq-1.5", bits: 1.5, bound: 0.125 });
  expect(results[0].sequences).toBeGreaterThanOrEqual(300);
  expect(results[0].distortion).toBeCloseTo(0.1175, 2);
  expect(await readFile(file, "utf8")).toContain("<title>vq-1.5</title>");
});

test("--speed adds what the wasm backend reaches", async () => {
  const args = ["palette", "--schemes", "nuq-2", "--sequences", "1", "--speed", "--threads", "1", "--json"];
  const { stdout } = await halftone(args);
  expect(JSON.parse(stdout)[0].weightsPerSecond).toBeGreaterThan(0);
});

test.each([
  [["--schemes", "nuq-9"], 'scheme "nuq-9" does not exist'],
  [["--schemes", "nuq-3,f16"], "f16 does not quantize"],
  [["--sequences", "0"], "--sequences"],
  [["--schemes", "nuq-2", "--sequences", "1", "--plot", "/nowhere/x.svg"], "its folder does not exist"],
])("%j is refused in one line", async (args, message) => {
  const { code, stderr } = await halftone(["palette", ...args]);
  expect(code).toBe(1);
  expect(stderr).toContain(message);
  expect(stderr.trimEnd()).not.toContain("\n");
});

test("families share a line; speeds that were measured make a third chart", () => {
  const results = [
    { quantizer: "tcq-s-3", bits: 3, distortion: 0.018, bound: 2 ** -6, weightsPerSecond: 2e10 },
    { quantizer: "tcq-s-3.25", bits: 3.25, distortion: 0.013, bound: 2 ** -6.5, weightsPerSecond: null },
    { quantizer: "nuq-3", bits: 3, distortion: 0.034, bound: 2 ** -6, weightsPerSecond: 5e10 },
  ];
  const svg = palettePlot(results);
  expect(svg.match(/font-weight="bold"/g)).toHaveLength(3);
  for (const name of ["tcq-s", "nuq", "bound 2^(-2 bits)"]) expect(svg).toContain(`>${name}<`);
  expect(svg.match(/<title>tcq-s-3.25<\/title>/g)).toHaveLength(2);
  const without = palettePlot(results.map(({ weightsPerSecond: _, ...rest }) => rest));
  expect(without.match(/font-weight="bold"/g)).toHaveLength(2);
});
