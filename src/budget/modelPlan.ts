/**
 * A plan for a model as a file: what `halftone plan MODEL -o plan.json` writes and `quantize --plan` reads.
 *
 * @module
 */
import { z } from "zod";
import { UsageError } from "../errors.ts";
import type { Choice } from "./plan.ts";
import { problemsOf } from "./problem.ts";

export const PLAN_FORMAT = "halftone-plan";
export const PLAN_VERSION = 1;

const MAX_CHOICES = 100_000;
const name = z.string().min(1).max(500);
const amount = z.number().nonnegative();
const share = z.number().min(0).max(1024);

const choiceSchema = z.object({
  layers: z
    .array(name)
    .min(1)
    .max(16)
    .describe("Names of weight tensors; several are stored and multiplied as one."),
  option: name.describe("The scheme they take, e.g. tcq-s-3.25; f32 leaves them as they are."),
});

/** Unknown members are left out: a newer program may say more. */
const modelPlanSchema = z.object({
  format: z.literal(PLAN_FORMAT),
  version: z.literal(PLAN_VERSION),
  model: z
    .object({
      source: z.string().describe("Where the planned model came from, for people."),
      digest: z
        .string()
        .optional()
        .describe("Of its tensors; without it any model of these layers is taken."),
    })
    .describe("Which model was planned."),
  budget: z.union([
    z.object({ bits: amount }).describe("Bits per weight of the linear layers' codes."),
    z.object({ bytes: amount }).describe("Of model.safetensors."),
    z.object({ tokensPerSecond: amount, batch: amount }),
  ]),
  choice: z.array(choiceSchema).min(1).max(MAX_CHOICES),
  compensation: z
    .object({
      bits: z
        .union([z.literal(2), z.literal(4), z.literal(8), z.literal(16)])
        .describe("Of a residual value."),
      channels: z
        .object({ qkv: share, o: share, gateUp: share, down: share })
        .describe("Input channels compensated of 1024, by kind of layer."),
    })
    .optional()
    .describe("Residual rows that the plan buys, see docs/compensation.md."),
  predicted: z.object({
    bytes: amount.describe("Size of model.safetensors, exact."),
    linearBits: amount.describe("Bits per weight of the linear layers, scales included."),
    loss: amount.describe("Kullback-Leibler divergence from the float model, nats per token."),
    tokensPerSecond: amount.optional().describe("Decoding, where times were measured."),
  }),
  objective: z.number().describe("Predicted loss of what was planned."),
  bound: z.number().describe("No plan within the budget has less."),
  gap: z.number(),
  idealObjective: z.number(),
  distortionGap: z.number(),
  allocationGap: z.number(),
});

export type ModelPlan = Omit<z.infer<typeof modelPlanSchema>, "choice"> & {
  /** Every layer of the model once; several in a choice are fused. */
  readonly choice: readonly Choice[];
};

/** Draft 2020-12 JSON Schema of the file. */
export function modelPlanJsonSchema(): unknown {
  return z.toJSONSchema(modelPlanSchema);
}

/** Checks a plan file's content; throws a UsageError that names the place and what is wrong there. */
export function parseModelPlan(value: unknown): ModelPlan {
  const { format, version } = (typeof value === "object" && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  if (format !== PLAN_FORMAT) {
    throw new UsageError(
      `is no plan for a model ("format" must be "${PLAN_FORMAT}"); make one with halftone plan MODEL`,
    );
  }
  if (version !== PLAN_VERSION) {
    throw new UsageError(
      `has version ${String(version)}, this Halftone reads ${PLAN_VERSION}; update halftone`,
    );
  }
  const result = modelPlanSchema.safeParse(value);
  if (!result.success)
    throw new UsageError(`${problemsOf(result.error.issues)}; make it anew with halftone plan MODEL`);
  const seen = new Set<string>();
  for (const [i, { layers }] of result.data.choice.entries()) {
    for (const layer of layers) {
      if (seen.has(layer))
        throw new UsageError(`choice[${i}].layers: names ${JSON.stringify(layer)} a second time`);
      seen.add(layer);
    }
  }
  return result.data;
}
