/**
 * What a policy map looks like as JSON, and reading it. The only part that needs a schema library: who has no map does
 * not load it, nor hold its 19 MB.
 *
 * @module
 */
import { z } from "zod";
import { HalftoneError } from "../errors.ts";
import { LARGEST_M, strategyNames } from "../ops/linear/policy.ts";

const strategyName = z.enum(strategyNames);
const size = z
  .int()
  .positive()
  .max(2 ** 24);

const pointSchema = z.object({
  m: z.int().positive().max(LARGEST_M),
  /** Medians. */
  seconds: z.partialRecord(strategyName, z.number().positive().max(1e6)),
  choice: strategyName,
});

const shapeSchema = z.object({
  n: size,
  k: size,
  scheme: z.string().min(1).max(100),
  weightBits: z.number().positive().max(32),
  activationBits: z.union([z.literal(4), z.literal(8)]),
  points: z.array(pointSchema).min(1).max(LARGEST_M),
});

const channels = z.number().min(0).max(1024);

const compensationSchema = z.object({
  /** What the layers are like, see compensation/residualFile.ts. */
  layers: z.string().max(10_000),
  slowdown: z.number().positive(),
  channels: z.object({ qkv: channels, o: channels, gateUp: channels, down: channels }),
  /** Threads that read rows, where these stay in the file. */
  readers: z.int().positive().optional(),
});

const mapSchema = z.object({
  version: z.literal(1),
  machine: z.string().max(1000),
  engine: z.string().max(1000),
  threads: z.int().positive(),
  shapes: z.array(shapeSchema).max(10_000),
  /** How compensated models run within a slowdown. */
  compensation: z.array(compensationSchema).max(10_000).optional(),
});

export type PolicyPoint = z.infer<typeof pointSchema>;
export type PolicyShape = z.infer<typeof shapeSchema>;
/** What `halftone tune --json` prints and the cache keeps. Valid for one machine, engine build and number of threads. */
export type PolicyMap = z.infer<typeof mapSchema>;

/** What a map is valid for. */
export type PolicyOrigin = Pick<PolicyMap, "machine" | "engine" | "threads">;

/** Reads a map. Throws a HalftoneError that names what is wrong in it. */
export function parsePolicyMap(text: string, source: string): PolicyMap {
  const remedy = "write it anew with halftone tune MODEL --json";
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new HalftoneError(`${source}: no JSON; ${remedy}`, { cause });
  }
  const parsed = mapSchema.safeParse(document);
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues;
  throw new HalftoneError(
    `${source}: no policy map (${path.join(".") || "document"}: ${message}); ${remedy}`,
    {
      cause: parsed.error,
    },
  );
}
