/**
 * Halftone in a browser, on a page or in a worker: models from URLs and from files that the user picks.
 *
 * @module
 * @example
 * import { load } from "halftone";
 * const model = await load("https://example.com/models/mini/");
 * for await (const text of model.generate("Once upon a time")) output.append(text);
 */
import { type SpawnWorker, webWorkers } from "./backends/wasm/workers.ts";
import { blobFiles } from "./checkpoint/blob.ts";
import type { Checkpoint } from "./checkpoint/checkpoint.ts";
import type { FileSet } from "./checkpoint/huggingface/fileSet.ts";
import { openFolder, openModelFile } from "./checkpoint/open.ts";
import { type UrlOptions, urlFiles } from "./checkpoint/url.ts";
import { Model, type ModelOptions } from "./engine/model.ts";
import { UsageError } from "./errors.ts";
import { ReferenceBackend } from "./ops/reference.ts";
import { openWasm } from "./ops/wasm.ts";

export type { SpawnWorker } from "./backends/wasm/workers.ts";
export { webWorkers } from "./backends/wasm/workers.ts";
export { blobFiles } from "./checkpoint/blob.ts";
export type { FileSet } from "./checkpoint/huggingface/fileSet.ts";
export { type UrlOptions, urlFiles } from "./checkpoint/url.ts";
export * from "./index.ts";

/**
 * Where a model lies: the URL of a Hugging Face folder or of a .gguf, .onnx, .safetensors or llama2.c .bin file,
 * relative to the page; picked files; or any set of files.
 */
export type ModelSource = string | URL | File | Iterable<Blob> | FileSet;

export interface LoadOptions extends ModelOptions, UrlOptions {
  /** `wasm` (default), or `reference`: plain TypeScript, slow, for comparison. */
  readonly backend?: "wasm" | "reference";
  /**
   * Threads that compute, the caller's included. Default all cores. A page that is not cross-origin isolated has
   * one, whatever is asked.
   */
  readonly threads?: number;
  /** Address of `halftone/worker.js`, where a Content-Security-Policy forbids workers from blobs. */
  readonly workerUrl?: string | URL;
  /** Starts threads in another way than `workerUrl` or a blob. */
  readonly spawn?: SpawnWorker;
}

/** Opens and loads a model. Dispose of it to end its threads. */
export async function load(model: ModelSource, options: LoadOptions = {}): Promise<Model> {
  const checkpoint = await openCheckpoint(model, options);
  try {
    const backend =
      options.backend === "reference"
        ? new ReferenceBackend()
        : await openWasm({
            threads: globalThis.crossOriginIsolated ? (options.threads ?? navigator.hardwareConcurrency) : 1,
            spawn: options.spawn ?? webWorkers(options.workerUrl),
          });
    try {
      return await Model.load(checkpoint, backend, options);
    } catch (error) {
      backend.dispose();
      throw error;
    }
  } finally {
    await checkpoint.close();
  }
}

/** Opens a model without loading it. Throws a UsageError when there is none. */
export async function openCheckpoint(model: ModelSource, options: UrlOptions = {}): Promise<Checkpoint> {
  if (typeof model === "string" || model instanceof URL) {
    const opened = await openAddress(addressOf(model), options);
    return { ...opened, source: String(model) };
  }
  if (model instanceof Blob) return openModelFile(blobFiles([model]), model.name);
  if (!(Symbol.iterator in model)) return openFolder(model);
  const blobs = [...model];
  const files = blobFiles(blobs);
  return blobs.length === 1 ? openModelFile(files, (blobs[0] as File).name) : openFolder(files);
}

const MODEL_FILE = /\.(gguf|onnx|safetensors|safetensors\.index\.json|bin)$/;

async function openAddress(address: URL, options: UrlOptions): Promise<Checkpoint> {
  if (!MODEL_FILE.test(address.pathname)) return openFolder(urlFiles(address, options));
  const { search } = address;
  const below = (path: string) => {
    const folder = new URL(path, address);
    folder.search = search;
    return urlFiles(folder, options);
  };
  const path = address.pathname.split("/").map(decodeURIComponent);
  const parent = path.at(-2) === "onnx" ? below("..") : undefined;
  return openModelFile(below("."), path.at(-1)!, parent);
}

/** A model on the hub's own page is meant as its files. */
function addressOf(model: string | URL): URL {
  let address: URL;
  try {
    address = new URL(model, globalThis.document?.baseURI ?? globalThis.location?.href);
  } catch (cause) {
    throw new UsageError(`${model}: no URL; give the address of a model's folder or file`, { cause });
  }
  if (!/^https?:$/.test(address.protocol))
    throw new UsageError(`${model}: no http address; fetch it yourself and give a File`);
  if (address.hostname === "huggingface.co" && /^\/[^/]+\/[^/]+\/?$/.test(address.pathname))
    address.pathname = `${address.pathname.replace(/\/$/, "")}/resolve/main/`;
  return address;
}
