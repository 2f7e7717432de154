import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { HubOptions } from "./hub/node.ts";
import { readJsonObject } from "./json.ts";
import { folderFiles } from "./node.ts";
import { MODEL_KINDS, openFolder, openModelFile } from "./open.ts";

/** What looks like a hub's `OWNER/NAME` and can only be a path. */
const MODEL_FILE = /\.(?:gguf|safetensors|onnx|bin|json)$/;

export interface OpenOptions {
  /** For a model of the hub: progress, signal, environment. */
  readonly hub?: HubOptions;
}

/**
 * Opens a model: a folder or file; `npm:PACKAGE[@VERSION]` among the installed packages; or
 * `OWNER/NAME[@REV][:QUANT]` on the Hugging Face hub, from its cache or fetched into it.
 * Throws a UsageError that says what was found when it is no model.
 */
export async function openCheckpoint(model: string, options: OpenOptions = {}): Promise<Checkpoint> {
  return { ...(await openPath(await locateModel(model, options))), source: model };
}

/** The folder or file where a model lies, as {@link openCheckpoint} looks for it: an existing path comes first. */
async function locateModel(model: string, { hub }: OpenOptions = {}): Promise<string> {
  if (await stat(model).catch(() => undefined)) return model;
  if (model.startsWith("npm:")) return packageFolder(model.slice(4));
  const { isModelId, resolveHubModel } = await import("./hub/node.ts");
  if (!isModelId(model) || MODEL_FILE.test(model)) {
    throw new UsageError(
      `${model}: no such file or folder; ${MODEL_KINDS}, npm:PACKAGE, or a hub's OWNER/NAME`,
    );
  }
  const { file, folder } = await resolveHubModel(model, hub);
  return file ?? folder;
}

async function openPath(path: string): Promise<Checkpoint> {
  const info = await stat(path);
  if (info.isDirectory()) return openFolder(folderFiles(path));
  const folder = dirname(resolve(path));
  const parent = basename(folder) === "onnx" ? folderFiles(dirname(folder)) : undefined;
  return openModelFile(folderFiles(dirname(path)), basename(path), parent);
}

/** Folder of an installed package, looked for from the working directory upward, then from Halftone's own. */
async function packageFolder(spec: string): Promise<string> {
  const match = /^((?:@\w[\w.-]*\/)?\w[\w.-]*)(?:@(.+))?$/.exec(spec);
  if (match === null)
    throw new UsageError(`npm:${spec}: no package name; write npm:PACKAGE or npm:PACKAGE@VERSION`);
  const [, name, version] = match;
  for (const from of [join(process.cwd(), "package.json"), import.meta.url]) {
    const folders = createRequire(from).resolve.paths(name) ?? [];
    for (const folder of folders) {
      const manifest = await folderFiles(join(folder, name)).open("package.json");
      if (manifest === undefined) continue;
      const found = (await readJsonObject(manifest).finally(() => manifest.close())).version;
      if (version !== undefined && found !== version) {
        throw new UsageError(
          `npm:${spec}: version ${found} is installed; run npm install ${name}@${version}`,
        );
      }
      return join(folder, name);
    }
  }
  throw new UsageError(`npm:${spec}: not installed here; run npm install ${spec}`);
}
