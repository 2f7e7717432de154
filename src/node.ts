/**
 * Halftone in Node: models from folders, files, packages and the hub, on all cores.
 *
 * @module
 * @example
 * import { load } from "halftone";
 * const model = await load("./my-model");
 * for await (const text of model.generate("Once upon a time")) process.stdout.write(text);
 */
import { availableParallelism } from "node:os";
import type { Backend } from "./backends/backend.ts";
import { nodeRowFetcher, spawnNodeWorker } from "./backends/wasm/workers.node.ts";
import { type OpenOptions, openCheckpoint } from "./checkpoint/open.node.ts";
import { Model, type ModelOptions } from "./engine/model.ts";
import { productShapes } from "./engine/productShapes.ts";
import type { PolicyMap } from "./mapping/policyFile.ts";
import { covers, policyOf } from "./mapping/policyMap.ts";
import { findPolicy, originHere } from "./mapping/store.node.ts";
import { ReferenceBackend } from "./ops/reference.ts";
import { openWasm } from "./ops/wasm.ts";
import { parseScheme } from "./quantizers/scheme.ts";

export { type OpenOptions, openCheckpoint } from "./checkpoint/open.node.ts";
export type { CalibrateOptions } from "./engine/calibrate/options.ts";
export { quantizeCheckpoint } from "./engine/quantize/quantize.node.ts";
export type { QuantizeProgress, QuantizeResult, QuantizeRun } from "./engine/quantize/run.ts";
export type { TuneOptions } from "./engine/tuning/options.ts";
export * from "./index.ts";

export interface LoadOptions extends ModelOptions, OpenOptions {
  /** `wasm` (default), or `reference`: plain TypeScript, slow, for comparison. */
  readonly backend?: "wasm" | "reference";
  /** Threads that compute. Default all cores. */
  readonly threads?: number;
  /** File of a policy map, see docs/mapping.md; default the one that `halftone tune` left in the cache. */
  readonly policy?: string;
  /** Told what was set aside and why, a line at a time. */
  readonly onNotice?: (line: string) => void;
  /** Told that the model's shapes were never measured here: `halftone tune` would choose its kernels better. */
  readonly onUntuned?: () => void;
}

/** Opens and loads a model: a folder, a file, `npm:PACKAGE`, or `OWNER/NAME` of the hub. Dispose of it to end its threads. */
export async function load(model: string, options: LoadOptions = {}): Promise<Model> {
  const checkpoint = await openCheckpoint(model, options);
  const threads = options.threads ?? availableParallelism();
  try {
    const { backend, map } = await openBackend(threads, options);
    try {
      const { compensation } = options;
      const tuned = (layers: string) => map?.compensation?.find((each) => each.layers === layers);
      const loaded = await Model.load(checkpoint, backend, {
        ...options,
        compensation: compensation !== false && { tuned, ...compensation },
      });
      if (options.backend !== "reference") tellCoverage(loaded, map, options);
      return loaded;
    } catch (error) {
      backend.dispose();
      throw error;
    }
  } finally {
    await checkpoint.close();
  }
}

async function openBackend(
  threads: number,
  { backend, policy, onNotice }: LoadOptions,
): Promise<{ backend: Backend; map?: PolicyMap }> {
  if (backend === "reference") return { backend: new ReferenceBackend() };
  const { map, notice } = await findPolicy(originHere(threads), policy);
  if (notice) onNotice?.(notice);
  const spawn = spawnNodeWorker;
  const options = { threads, spawn, fetchRows: nodeRowFetcher, policy: map && policyOf(map) };
  return { backend: await openWasm(options), map };
}

function tellCoverage({ weights }: Model, map: PolicyMap | undefined, options: LoadOptions): void {
  const shapes = productShapes(weights).filter(({ scheme }) => parseScheme(scheme).family !== "float");
  if (shapes.length === 0 || (map && covers(map, shapes))) return;
  if (map && options.policy)
    options.onNotice?.(`${options.policy}: it was measured for other models; set aside`);
  else options.onUntuned?.();
}
