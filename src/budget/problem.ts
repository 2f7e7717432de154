/**
 * The planner's problem as data: layers, quantizers to choose from, a budget and what things cost. Sensitivities,
 * measured losses and cost profiles of a model arrive here; see docs/planning.md.
 *
 * @module
 */
import { z } from "zod";
import { UsageError } from "../errors.ts";
import { setKey } from "./partitions.ts";

/** Bounds that keep sums exact or finite and a mistaken file from filling the memory. */
const MAX_LAYERS = 20_000;
const MAX_OPTIONS = 1_000;
const MAX_PAIRS = 2_000_000;
const MAX_WEIGHTS = 2 ** 50;
const MAX_VALUE = 1e30;
/** Problems of a file that one message names. */
const MAX_NAMED = 3;

const name = z.string().min(1).max(500);
const amount = z.number().nonnegative().max(MAX_VALUE);

const layerSchema = z.strictObject({
  name: name.describe("Name of the layer, unique."),
  weights: z.int().positive().max(MAX_WEIGHTS).describe("Number of weights, d_in times d_out."),
  sensitivity: amount.describe("a_l of the linearity theorem: loss per unit of relative squared error."),
  group: name
    .optional()
    .describe("Layers of one group read the same input: costs may name fused sets of them."),
});

const optionSchema = z.strictObject({
  name: name.describe("Name of the quantizer, unique."),
  bits: z.number().min(0.001).max(64).describe("Bits per weight."),
  distortion: amount.describe("Relative squared error on Gaussian weights."),
});

const budgetSchema = z.union(
  [
    z.strictObject({
      bits: z.number().positive().max(64).describe("Bits per weight, averaged over all weights."),
    }),
    z.strictObject({ seconds: z.number().positive().max(MAX_VALUE).describe("Seconds, overhead included.") }),
  ],
  { error: 'must be {"bits": N} or {"seconds": N}, N above 0 (bits at most 64)' },
);

const costSchema = z.strictObject({
  layers: z.array(name).min(1).max(16).describe("One layer, or the layers of one group that are fused."),
  option: name.describe("The quantizer they all take."),
  seconds: amount.describe("Time of the layer, or of all the fused layers together."),
});

const measurementSchema = z.strictObject({
  layer: name,
  option: name,
  loss: z
    .number()
    .min(-MAX_VALUE)
    .max(MAX_VALUE)
    .optional()
    .describe("Measured loss, instead of sensitivity times distortion."),
  bytes: z
    .int()
    .positive()
    .max(MAX_WEIGHTS)
    .optional()
    .describe("Stored bytes, tables and scales included, instead of bits times weights."),
});

/** The file format; docs/plan-problem.schema.json is made of it. */
const problemSchema = z
  .strictObject({
    $schema: z.string().optional().describe("For editors; ignored."),
    layers: z.array(layerSchema).min(1).max(MAX_LAYERS),
    options: z.array(optionSchema).min(1).max(MAX_OPTIONS),
    budget: budgetSchema,
    costs: z
      .array(costSchema)
      .max(MAX_PAIRS)
      .optional()
      .describe(
        "Time of layers and of fused sets; what is not listed is not available to a budget of seconds.",
      ),
    overheadSeconds: amount.optional().describe("Time of everything else. Default 0."),
    measured: z
      .array(measurementSchema)
      .max(MAX_PAIRS)
      .optional()
      .describe("What is known better than from sensitivity, distortion and bits."),
  })
  .meta({ title: "Problem of halftone plan" });

/** A checked problem. */
export type Problem = z.infer<typeof problemSchema>;

/** Draft 2020-12 JSON Schema of the file format. */
export function problemJsonSchema(): unknown {
  return z.toJSONSchema(problemSchema);
}

/** Checks a problem; throws a UsageError that names the place, what is wrong there and what is allowed. */
export function parseProblem(value: unknown): Problem {
  const result = problemSchema.safeParse(value);
  if (!result.success) {
    throw new UsageError(`${problemsOf(result.error.issues)}; see docs/planning.md for the format`);
  }
  checkReferences(result.data);
  return result.data;
}

function checkReferences({ layers, options, budget, costs = [], measured = [] }: Problem): void {
  if (layers.length * options.length > MAX_PAIRS) {
    fail("options", `${layers.length} layers x ${options.length} options are more than ${MAX_PAIRS} pairs`);
  }
  const layerIndex = indexOf(layers, "layers");
  const optionIndex = indexOf(options, "options");
  const costed = new Set<string>();
  costs.forEach((cost, i) => {
    const indices = cost.layers.map((layer, j) =>
      known(layerIndex, layer, `costs[${i}].layers[${j}]`, "layer"),
    );
    const option = known(optionIndex, cost.option, `costs[${i}].option`, "option");
    if (new Set(indices).size < indices.length) fail(`costs[${i}].layers`, "names a layer twice");
    const groups = new Set(indices.map((index) => layers[index].group));
    if (indices.length > 1 && (groups.size > 1 || groups.has(undefined))) {
      fail(`costs[${i}].layers`, "fuses layers that do not share one group; give them the same group");
    }
    once(
      costed,
      `${setKey(indices)}:${option}`,
      `costs[${i}]`,
      "repeats layers and option of an earlier cost",
    );
  });
  const seen = new Set<string>();
  measured.forEach(({ layer, option }, i) => {
    const pair = `${known(layerIndex, layer, `measured[${i}].layer`, "layer")}:${known(optionIndex, option, `measured[${i}].option`, "option")}`;
    once(seen, pair, `measured[${i}]`, "repeats layer and option of an earlier measurement");
  });
  if ("seconds" in budget && costs.length === 0) {
    fail("costs", "a budget of seconds needs the seconds of layers; list them");
  }
}

/** The first few problems that a schema found, with their places. */
export function problemsOf(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
): string {
  const named = issues.slice(0, MAX_NAMED).map(({ path, message }) => `${place(path)}: ${message}`);
  const more = issues.length > MAX_NAMED ? `; ${issues.length - MAX_NAMED} more` : "";
  return `${named.join("; ")}${more}`;
}

function indexOf(named: readonly { readonly name: string }[], list: string): Map<string, number> {
  const index = new Map<string, number>();
  named.forEach(({ name: each }, i) => {
    const first = index.get(each);
    if (first !== undefined)
      fail(`${list}[${i}].name`, `${quoted(each)} is the name of ${list}[${first}] too`);
    index.set(each, i);
  });
  return index;
}

function known(index: ReadonlyMap<string, number>, each: string, where: string, kind: string): number {
  return index.get(each) ?? fail(where, `there is no ${kind} ${quoted(each)}`);
}

function once(seen: Set<string>, key: string, where: string, problem: string): void {
  if (seen.has(key)) fail(where, `${problem}; keep one`);
  seen.add(key);
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}

function fail(where: string, problem: string): never {
  throw new UsageError(`${where}: ${problem}`);
}

/** `layers[3].weights` */
function place(path: readonly PropertyKey[]): string {
  const parts = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  return parts.join("").replace(/^\./, "") || "the problem";
}
