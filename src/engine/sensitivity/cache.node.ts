/**
 * Where measured sensitivities stay: a JSON file beside the model, or in the user's cache when the model's place
 * cannot be written or is not the user's own (packages, the hub's cache). See docs/planning.md, "Sensitivities".
 *
 * @module
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { unwritable } from "../../checkpoint/outputFolder.node.ts";
import { replaceFile } from "../../replaceFile.node.ts";
import { userCache } from "../../userCache.node.ts";
import type { SensitivityPart } from "./options.ts";

const VERSION = 2;

const fileSchema = z.object({
  version: z.literal(VERSION),
  request: z.string(),
  parts: z.array(z.object({ tokens: z.number(), values: z.array(z.number()) })),
  calibrationGains: z.array(z.number()).optional(),
});

/** What a measurement has so far. */
export interface SensitivityCache {
  readonly parts: readonly SensitivityPart[];
  /** Adds a part; the file is whole at any time. */
  add(part: SensitivityPart): Promise<void>;
  /** What calibration leaves of each tensor's loss, once measured. */
  readonly gains: readonly number[] | undefined;
  setGains(gains: readonly number[]): Promise<void>;
}

/** Opens the cache of a request: all that the result depends on, in words. */
export async function openCache(
  checkpoint: Checkpoint,
  request: Readonly<Record<string, unknown>>,
  tensors: readonly string[],
  folder: string | undefined,
): Promise<SensitivityCache> {
  const key = createHash("sha256")
    .update(JSON.stringify(request))
    .update(await fingerprint(checkpoint))
    .digest("hex");
  const name = `halftone-sensitivities-${key.slice(0, 16)}.json`;
  const folders = folder === undefined ? await cacheFolders(checkpoint.source) : [folder];
  let known: Known = { parts: [] };
  for (const candidate of folders) {
    const found = await readKnown(join(candidate, name), key, tensors.length);
    if (found && found.parts.length >= known.parts.length) known = found;
  }
  const write = async (next: Known) => {
    known = next;
    const content = {
      version: VERSION,
      request: key,
      model: checkpoint.source,
      ...request,
      tensors,
      ...known,
    };
    await writeFirst(folders, name, `${JSON.stringify(content, undefined, 1)}\n`);
  };
  return {
    get parts() {
      return known.parts;
    },
    get gains() {
      return known.calibrationGains;
    },
    add: (part) => write({ ...known, parts: [...known.parts, part] }),
    setGains: (calibrationGains) => write({ ...known, calibrationGains }),
  };
}

interface Known {
  readonly parts: readonly SensitivityPart[];
  readonly calibrationGains?: readonly number[];
}

async function readKnown(path: string, key: string, tensors: number): Promise<Known | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { request, parts, calibrationGains } = fileSchema.parse(JSON.parse(text));
    const whole = [...parts.map(({ values }) => values), calibrationGains].every(
      (row) => !row || row.length === tensors,
    );
    return request === key && whole ? { parts, calibrationGains } : undefined;
  } catch {
    // A file that is no cache of this version is measured anew.
    return undefined;
  }
}

/** Writes into the first of the folders that can be written. */
async function writeFirst(folders: readonly string[], name: string, text: string): Promise<void> {
  let failure: unknown;
  for (const folder of folders) {
    const path = join(folder, name);
    try {
      return await replaceFile(path, text);
    } catch (cause) {
      failure = unwritable(path, cause);
    }
  }
  throw failure;
}

async function cacheFolders(source: string): Promise<string[]> {
  const own = join(userCache(), "sensitivities");
  const info = await stat(source).catch(() => undefined);
  if (!info) return [own];
  return [info.isDirectory() ? resolve(source) : dirname(resolve(source)), own];
}

/** Config, tensors, how they were balanced, and the values of all vectors (norms, biases), which any training changes. */
async function fingerprint({ config, tensors, balance }: Checkpoint): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify(config));
  if (balance) hash.update(balance.digest);
  for (const tensor of [...tensors.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name, shape, encoding } = tensor;
    hash.update(JSON.stringify([name, shape, encoding]));
    if (shape.length === 1) hash.update(await tensor.readRows(0, shape[0]));
  }
  return hash.digest("hex");
}
