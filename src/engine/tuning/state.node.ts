/**
 * What tuning has so far, in a file of the partial folder: a line of JSON, then numbers.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { unwritable } from "../../checkpoint/outputFolder.node.ts";
import type { TuneState } from "./tune.ts";

const FILE = ".halftone-tuning";
const NEWLINE = 10;

export interface SavedTuning {
  readonly state: TuneState;
  /** The parameters as they are after the state's last step. */
  readonly values: Float64Array;
  /** Scales that the weights were quantized with, by name. */
  readonly scales: ReadonlyMap<string, Float32Array>;
  /** Sequences that the model made up. */
  readonly samples: number[][] | undefined;
}

const headerSchema = z.object({
  digest: z.string(),
  step: z.number(),
  before: z.number().optional(),
  best: z.object({ step: z.number(), divergence: z.number() }).optional(),
  parameters: z.number(),
  scales: z.array(z.tuple([z.string(), z.number()])),
  samples: z.array(z.array(z.number())).optional(),
});

/** Replaces the folder's file, which is whole at any time. */
export async function saveTuning(folder: string, saved: SavedTuning): Promise<void> {
  const { state, values, scales, samples } = saved;
  const { moments, best, step, before } = state;
  const doubles = [values, moments.first, moments.second, best?.values ?? new Float64Array(values.length)];
  const arrays = [...doubles, ...scales.values()];
  const body = Buffer.concat(
    arrays.map((each) => Buffer.from(each.buffer, each.byteOffset, each.byteLength)),
  );
  const header: z.infer<typeof headerSchema> = {
    digest: createHash("sha256").update(body).digest("hex"),
    ...{ step, before, samples, best: best && { step: best.step, divergence: best.divergence } },
    parameters: values.length,
    scales: Array.from(scales, ([name, { length }]) => [name, length]),
  };
  const path = join(folder, FILE);
  const whole = Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), body]);
  await writeFile(`${path}.partial`, whole)
    .then(() => rename(`${path}.partial`, path))
    .catch((cause: unknown) => {
      throw unwritable(path, cause);
    });
}

/** What an earlier run saved, if it is whole. */
export async function readTuning(folder: string): Promise<SavedTuning | undefined> {
  const bytes = await readFile(join(folder, FILE)).catch(() => undefined);
  if (bytes === undefined) return undefined;
  const end = bytes.indexOf(NEWLINE);
  const header = parseHeader(bytes.subarray(0, Math.max(0, end)).toString());
  // A copy of its own: at the start of a buffer, where float64 arrays may begin.
  const body = new Uint8Array(bytes.subarray(end + 1));
  if (!header || createHash("sha256").update(body).digest("hex") !== header.digest) return undefined;
  const { parameters, step, before, best } = header;
  let at = 0;
  const doubles = () => {
    const array = new Float64Array(body.buffer, at, parameters);
    at += array.byteLength;
    return array;
  };
  const [values, first, second, bestValues] = [doubles(), doubles(), doubles(), doubles()];
  const scales = new Map<string, Float32Array>();
  for (const [name, length] of header.scales) {
    scales.set(name, new Float32Array(body.buffer, at, length));
    at += 4 * length;
  }
  const state: TuneState = {
    ...{ step, before, moments: { first, second } },
    best: best && { ...best, values: bestValues },
  };
  return { state, values, scales, samples: header.samples };
}

/** Removes the file: the folder is complete. */
export async function removeTuning(folder: string): Promise<void> {
  await rm(join(folder, FILE), { force: true });
}

function parseHeader(text: string): z.infer<typeof headerSchema> | undefined {
  try {
    return headerSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
