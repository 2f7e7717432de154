import fc from "fast-check";
import { expect, test } from "vitest";
import { parseProblem, problemJsonSchema } from "../../src/budget/problem.ts";
import { solve } from "../../src/budget/solve.ts";
import { HalftoneError, UsageError } from "../../src/errors.ts";

const valid = {
  layers: [
    { name: "q", weights: 64, sensitivity: 1, group: "qkv" },
    { name: "k", weights: 32, sensitivity: 2, group: "qkv" },
    { name: "o", weights: 64, sensitivity: 1, group: "o" },
  ],
  options: [
    { name: "two", bits: 2, distortion: 0.1 },
    { name: "four", bits: 4, distortion: 0.01 },
  ],
  budget: { bits: 3 },
  costs: [{ layers: ["q", "k"], option: "two", seconds: 1 }],
};

/** A copy with the value at a path like `layers.0.weights` replaced. */
function altered(path: string, value: unknown): unknown {
  const copy = structuredClone(valid);
  const keys = path.split(".");
  let at = copy as unknown as Record<string, unknown>;
  for (const key of keys.slice(0, -1)) at = at[key] as Record<string, unknown>;
  at[keys[keys.length - 1]] = value;
  return copy;
}

test.each<[path: string, value: unknown, message: RegExp]>([
  ["layers", [], /^layers: /],
  ["layers.1.weights", -1, /^layers\[1\]\.weights: /],
  ["layers.1.weights", 1.5, /^layers\[1\]\.weights: /],
  ["layers.1.weights", 1e300, /^layers\[1\]\.weights: /],
  ["layers.0.sensitivity", Number.NaN, /^layers\[0\]\.sensitivity: /],
  ["layers.0.sensitivity", -1, /^layers\[0\]\.sensitivity: /],
  ["layers.0.sensitivity", Infinity, /^layers\[0\]\.sensitivity: /],
  ["layers.0.sensitivty", 1, /^layers\[0\]: .*sensitivty/],
  ["layers.1.name", "q", /^layers\[1\]\.name: "q" is the name of layers\[0\] too/],
  ["options.1.name", "two", /^options\[1\]\.name: "two" is the name of options\[0\] too/],
  ["options.0.bits", 0, /^options\[0\]\.bits: /],
  ["options.0.distortion", "0.1", /^options\[0\]\.distortion: /],
  ["budget", { bits: -3 }, /^budget\.bits: /],
  ["budget", { bits: 3, seconds: 1 }, /^budget: must be \{"bits": N\} or \{"seconds": N\}/],
  ["budget", undefined, /^budget: must be/],
  ["costs.0.option", "eight", /^costs\[0\]\.option: there is no option "eight"/],
  ["costs.0.layers", ["q", "v"], /^costs\[0\]\.layers\[1\]: there is no layer "v"/],
  ["costs.0.layers", ["q", "q"], /^costs\[0\]\.layers: names a layer twice/],
  ["costs.0.layers", ["q", "o"], /^costs\[0\]\.layers: fuses layers that do not share one group/],
  ["costs.0.layers", [], /^costs\[0\]\.layers: /],
  ["costs.0.seconds", -1, /^costs\[0\]\.seconds: /],
  ["costs.1", { layers: ["k", "q"], option: "two", seconds: 2 }, /^costs\[1\]: repeats/],
  ["measured", [{ layer: "z", option: "two", loss: 1 }], /^measured\[0\]\.layer: there is no layer "z"/],
  ["overheadSeconds", -1, /^overheadSeconds: /],
])("%s = %j is refused", (path, value, message) => {
  const parse = () => parseProblem(altered(path, value));
  expect(parse).toThrow(UsageError);
  expect(parse).toThrow(message);
});

test("what is no problem at all", () => {
  for (const value of [null, undefined, 3, "text", [], {}])
    expect(() => parseProblem(value)).toThrow(UsageError);
});

test("a budget of seconds needs costs", () => {
  const { costs: _, ...rest } = valid;
  expect(() => parseProblem({ ...rest, budget: { seconds: 1 } })).toThrow(/^costs: /);
});

test("sets that connect too many layers are refused before their partitions are listed", async () => {
  const layers = Array.from({ length: 12 }, (_, i) => ({
    name: `${i}`,
    weights: 1,
    sensitivity: 1,
    group: "g",
  }));
  const costs = layers.flatMap((a, i) =>
    layers.slice(i).map((b) => ({ layers: [...new Set([a.name, b.name])], option: "two", seconds: 1 })),
  );
  const problem = { ...valid, layers, costs, budget: { seconds: 5 } };
  await expect(solve(problem)).rejects.toThrow(/connect 12 layers .*leave some sets out/);
});

test("too many layers or pairs are refused", () => {
  const many = <T>(count: number, of: (i: number) => T) => Array.from({ length: count }, (_, i) => of(i));
  const layers = many(20_000, (i) => ({ name: `${i}`, weights: 1, sensitivity: 1 }));
  const options = many(1000, (i) => ({ name: `${i}`, bits: 2, distortion: 1 }));
  expect(() => parseProblem({ layers, options, budget: { bits: 2 } })).toThrow(/20000 layers x 1000 options/);
  expect(() => parseProblem({ ...valid, layers: [...layers, ...layers] })).toThrow(/^layers: /);
});

test("extreme numbers give a plan or a HalftoneError", async () => {
  const number = fc.oneof(
    fc.double({ min: 0, max: 1e30 }),
    fc.constantFrom(0, 5e-324, 1e-300, 1e-16, 1, 1e15, 1e30),
  );
  const names = ["q", "k", "o"];
  const sets = [["q"], ["k"], ["q", "k"], ["o"]];
  const problem = fc.record({
    layers: fc
      .tuple(...names.map(() => fc.record({ weights: fc.constantFrom(1, 7, 2 ** 50), sensitivity: number })))
      .map((list) => list.map((each, i) => ({ name: names[i], group: i < 2 ? "g" : "o", ...each }))),
    options: fc
      .array(fc.record({ bits: fc.constantFrom(0.001, 1, 64), distortion: number }), {
        minLength: 1,
        maxLength: 4,
      })
      .map((list) => list.map((each, i) => ({ name: `o${i}`, ...each }))),
    seconds: fc.array(number, { minLength: 16, maxLength: 16 }),
    budget: fc.oneof(fc.record({ bits: fc.constantFrom(0.001, 1, 3, 64) }), fc.record({ seconds: number })),
  });
  await fc.assert(
    fc.asyncProperty(problem, async ({ seconds, ...rest }) => {
      const costs = sets.flatMap((layers, set) =>
        rest.options.map(({ name }, i) => ({ layers, option: name, seconds: seconds[4 * set + i] })),
      );
      try {
        const plan = await solve({ ...rest, costs });
        expect(plan.choice.flatMap(({ layers }) => layers).sort()).toEqual(["k", "o", "q"]);
        expect(plan.bound).toBeLessThanOrEqual(plan.objective);
        expect(plan.gap).toBeGreaterThanOrEqual(0);
        expect(plan.gap).toBeLessThanOrEqual(1);
      } catch (error) {
        if (!(error instanceof HalftoneError)) throw error;
      }
    }),
    { numRuns: 300 },
  );
});

test("docs/plan-problem.schema.json is the schema in force", async () => {
  const text = `${JSON.stringify(problemJsonSchema(), null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("../../docs/plan-problem.schema.json");
});
