import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { readJsonObject } from "./json.ts";
import { folderFiles } from "./node.ts";
import { MODEL_KINDS, openFolder, openModelFile } from "./open.ts";

/**
 * Opens a model: a folder, a file, or `npm:PACKAGE[@VERSION]` among the installed packages.
 * Nothing is downloaded. Throws a UsageError that says what was found when it is no model.
 */
export async function openCheckpoint(model: string): Promise<Checkpoint> {
  const opened = await openPath(model.startsWith("npm:") ? await packageFolder(model.slice(4)) : model);
  return { ...opened, source: model };
}

async function openPath(path: string): Promise<Checkpoint> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined)
    throw new UsageError(`${path}: no such file or folder; ${MODEL_KINDS}, or npm:PACKAGE`);
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
