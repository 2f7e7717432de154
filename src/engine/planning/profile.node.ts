/**
 * Cost profiles of this machine, measured once and kept in the user's cache.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import * as kernels from "../../backends/wasm/kernels.generated.ts";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { policyOf } from "../../mapping/policyMap.ts";
import { findPolicy, originHere } from "../../mapping/store.node.ts";
import { openWasm } from "../../ops/wasm.ts";
import { replaceFile } from "../../replaceFile.node.ts";
import { userCache } from "../../userCache.node.ts";
import type { CostProfile } from "./costs.ts";
import { plannableModel } from "./layers.ts";
import { measureProfile } from "./profile.ts";

export interface ProfileRun {
  readonly schemes: readonly string[];
  /** Sequences that a step decodes side by side. */
  readonly batch: number;
  /** Default all cores. */
  readonly threads?: number;
  /** Measure even what is known. */
  readonly anew?: boolean;
  /** Folder of the cache; default `~/.cache/halftone/profiles`. */
  readonly cacheFolder?: string;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Changes whenever a measurement means something else. */
const VERSION = 2;

const amount = z.number().nonnegative();
const profileSchema = z.object({
  batch: amount,
  threads: amount,
  overheadSeconds: amount,
  times: z.array(z.object({ rows: amount, columns: amount, scheme: z.string(), seconds: amount })),
});

/** The cost profile of a model's shapes on the wasm backend here: from the cache, or measured within seconds. */
export async function costProfile(checkpoint: Checkpoint, run: ProfileRun): Promise<CostProfile> {
  const { schemes, batch, threads = availableParallelism(), anew = false } = run;
  const model = plannableModel(checkpoint);
  // Products are timed with the kernels that the model will be run with.
  const { map } = await findPolicy(originHere(threads), undefined);
  const key = createHash("sha256")
    .update(
      JSON.stringify({
        version: VERSION,
        machine: [process.arch, cpus()[0]?.model, process.versions.v8, threads, batch],
        kernels: Object.values(kernels),
        policy: map?.shapes,
        schemes,
        config: checkpoint.config,
        layers: model.layers.map(({ rows, columns }) => [rows, columns]),
      }),
    )
    .digest("hex");
  const folder = run.cacheFolder ?? join(userCache(), "profiles");
  const path = join(folder, `${key.slice(0, 24)}.json`);
  const known = anew ? undefined : await readProfile(path);
  if (known) return known;
  const backend = await openWasm({
    threads,
    spawn: spawnNodeWorker,
    wholeTeam: true,
    policy: map && policyOf(map),
  });
  try {
    const { onProgress, signal } = run;
    const profile = await measureProfile(backend, checkpoint, { model, schemes, batch, onProgress, signal });
    // A cache that cannot be written costs some seconds next time, no more.
    await replaceFile(path, JSON.stringify(profile)).catch(() => undefined);
    return profile;
  } finally {
    backend.dispose();
  }
}

async function readProfile(path: string): Promise<CostProfile | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return profileSchema.parse(JSON.parse(text));
  } catch {
    // Whatever it is, it is measured anew.
    return undefined;
  }
}
