import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { FileSet } from "./huggingface/fileSet.ts";
import { openHuggingFace } from "./huggingface/folder.ts";
import { readJsonObject } from "./json.ts";
import { folderFiles, openFile } from "./node.ts";
import { INDEX_FILE, SINGLE_FILE } from "./safetensors/reader.ts";

const ACCEPTED =
  "a model is a folder with config.json and model.safetensors (or its shards, or onnx/*.onnx), " +
  "a .safetensors, .onnx, .gguf or llama2.c .bin file, or npm:PACKAGE[@VERSION]";

/** Loaded when a file needs them: most runs read safetensors, and code takes memory too. */
const readers = {
  gguf: () => import("./gguf/open.ts"),
  onnx: () => import("./onnx/open.ts"),
  llama2c: () => import("./llama2c/open.ts"),
};

/** transformers.js's names of an export, the most exact first. */
const ONNX_PREFERENCE = ["", "_fp16", "_quantized", "_int8", "_uint8", "_q8", "_q4", "_q4f16", "_bnb4"];

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
  if (info === undefined) throw new UsageError(`${path}: no such file or folder; ${ACCEPTED}`);
  return info.isDirectory() ? openFolder(path) : openModelFile(path);
}

async function openFolder(folder: string): Promise<Checkpoint> {
  const files = folderFiles(folder);
  const names = await files.list();
  if (names.includes(SINGLE_FILE) || names.includes(INDEX_FILE)) return openHuggingFace(files);
  const exported = preferred(await files.list("onnx"));
  const onnx = exported === undefined ? preferred(names) : `onnx/${exported}`;
  if (onnx !== undefined) return (await readers.onnx()).openOnnx(files, onnx);
  const gguf = names.find((name) => /\.gguf$/.test(name) && !/-0*(?!1-)\d+-of-\d+\.gguf$/.test(name));
  if (gguf !== undefined) return openModelFile(join(folder, gguf));
  return openHuggingFace(files);
}

async function openModelFile(path: string): Promise<Checkpoint> {
  const name = basename(path);
  const folder = folderFiles(dirname(path));
  if (name.endsWith(".safetensors.index.json")) return openHuggingFace(withWeights(folder, INDEX_FILE, name));
  if (name.endsWith(".safetensors")) return openHuggingFace(withWeights(folder, SINGLE_FILE, name));
  if (name.endsWith(".onnx")) return openOnnxFile(path, name);
  const source = await openFile(path);
  if (name.endsWith(".gguf")) {
    const { openGguf } = await readers.gguf();
    return openGguf(source, (sibling) => openFile(join(dirname(path), sibling)));
  }
  const { isLlama2c, openLlama2c } = await readers.llama2c();
  if (await isLlama2c(source)) return openLlama2c(source);
  await source.close();
  throw new UsageError(`${path}: no model file (${source.size} bytes of another kind); ${ACCEPTED}`);
}

/** config.json lies beside the file, or above it when the file is in transformers.js's `onnx` folder. */
async function openOnnxFile(path: string, name: string): Promise<Checkpoint> {
  const folder = dirname(resolve(path));
  const beside = await folderFiles(folder).list();
  const inside = !beside.includes("config.json") && basename(folder) === "onnx";
  const { openOnnx } = await readers.onnx();
  return inside
    ? openOnnx(folderFiles(dirname(folder)), `onnx/${name}`)
    : openOnnx(folderFiles(dirname(path)), name);
}

function preferred(names: readonly string[]): string | undefined {
  for (const stem of ["model", "decoder_model_merged", "decoder_model"]) {
    for (const suffix of ONNX_PREFERENCE)
      if (names.includes(`${stem}${suffix}.onnx`)) return `${stem}${suffix}.onnx`;
  }
  return names.find((name) => name.endsWith(".onnx"));
}

/** The same files with `name` as their weights, in the role of `as`. */
function withWeights(files: FileSet, as: string, name: string): FileSet {
  return {
    ...files,
    async open(file) {
      if (file === as) return files.open(name);
      return file === SINGLE_FILE || file === INDEX_FILE ? undefined : files.open(file);
    },
  };
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
