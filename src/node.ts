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
import { nodeRowFetcher, spawnNodeWorker } from "./backends/wasm/workers.node.ts";
import { type OpenOptions, openCheckpoint } from "./checkpoint/open.node.ts";
import { Model, type ModelOptions } from "./engine/model.ts";
import { ReferenceBackend } from "./ops/reference.ts";
import { openWasm } from "./ops/wasm.ts";

export { type OpenOptions, openCheckpoint } from "./checkpoint/open.node.ts";
export * from "./index.ts";

export interface LoadOptions extends ModelOptions, OpenOptions {
  /** `wasm` (default), or `reference`: plain TypeScript, slow, for comparison. */
  readonly backend?: "wasm" | "reference";
  /** Threads that compute. Default all cores. */
  readonly threads?: number;
}

/** Opens and loads a model: a folder, a file, `npm:PACKAGE`, or `OWNER/NAME` of the hub. Dispose of it to end its threads. */
export async function load(model: string, options: LoadOptions = {}): Promise<Model> {
  const checkpoint = await openCheckpoint(model, options);
  const threads = options.threads ?? availableParallelism();
  const backend =
    options.backend === "reference"
      ? new ReferenceBackend()
      : await openWasm({ threads, spawn: spawnNodeWorker, fetchRows: nodeRowFetcher });
  try {
    return await Model.load(checkpoint, backend, options);
  } catch (error) {
    backend.dispose();
    throw error;
  } finally {
    await checkpoint.close();
  }
}
