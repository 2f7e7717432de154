/**
 * Tells model formats apart, wherever the files lie.
 *
 * @module
 */
import { UsageError } from "../errors.ts";
import type { ByteSource, Checkpoint } from "./checkpoint.ts";
import type { FileSet } from "./huggingface/fileSet.ts";
import { openHuggingFace } from "./huggingface/folder.ts";
import { INDEX_FILE, SINGLE_FILE } from "./safetensors/reader.ts";

/** What a model may be, for messages. */
export const MODEL_KINDS =
  "a model is a folder with config.json and model.safetensors (or its shards, or onnx/*.onnx), " +
  "or a .safetensors, .onnx, .gguf or llama2.c .bin file";

/** Loaded when a file needs them: most runs read safetensors, and code takes memory too. */
const readers = {
  gguf: () => import("./gguf/open.ts"),
  onnx: () => import("./onnx/open.ts"),
  llama2c: () => import("./llama2c/open.ts"),
};

/** transformers.js's names of an export, the most exact first. */
const ONNX_SUFFIXES = ["", "_fp16", "_quantized", "_int8", "_uint8", "_q8", "_q4", "_q4f16", "_bnb4"];
const ONNX_STEMS = ["model", "decoder_model_merged", "decoder_model"];

/** Opens the model of a folder: safetensors before ONNX before GGUF. */
export async function openFolder(files: FileSet): Promise<Checkpoint> {
  const names = await files.list();
  if (names.length === 0) return openUnlisted(files);
  if (names.includes(SINGLE_FILE) || names.includes(INDEX_FILE)) return openHuggingFace(files);
  const exported = preferred(await files.list("onnx"));
  const onnx = exported === undefined ? preferred(names) : `onnx/${exported}`;
  if (onnx !== undefined) return (await readers.onnx()).openOnnx(files, onnx);
  const gguf = names.find((name) => /\.gguf$/.test(name) && !/-0*(?!1-)\d+-of-\d+\.gguf$/.test(name));
  if (gguf !== undefined) return openModelFile(files, gguf);
  return openHuggingFace(files);
}

/**
 * Opens the model file `name` of `files`. `parent` is the folder above, given when the file lies in a folder
 * called `onnx`: transformers.js keeps config.json and the tokenizer there.
 */
export async function openModelFile(files: FileSet, name: string, parent?: FileSet): Promise<Checkpoint> {
  if (name.endsWith(".safetensors.index.json")) return openHuggingFace(withWeights(files, INDEX_FILE, name));
  if (name.endsWith(".safetensors")) return openHuggingFace(withWeights(files, SINGLE_FILE, name));
  if (name.endsWith(".onnx")) {
    const above = parent !== undefined && !(await exists(files, "config.json")) ? parent : undefined;
    const { openOnnx } = await readers.onnx();
    return above === undefined ? openOnnx(files, name) : openOnnx(above, `onnx/${name}`);
  }
  const source = await required(files, name);
  try {
    if (name.endsWith(".gguf")) {
      const { openGguf } = await readers.gguf();
      return await openGguf(source, (sibling) => required(files, sibling));
    }
    const { isLlama2c, openLlama2c } = await readers.llama2c();
    if (await isLlama2c(source)) return await openLlama2c(source);
    throw new UsageError(
      `${source.name}: no model file (${source.size} bytes of another kind); ${MODEL_KINDS}`,
    );
  } catch (error) {
    await source.close();
    throw error;
  }
}

/** A server says only whether a file that is asked for exists. What was opened to ask is handed on, not fetched again. */
async function openUnlisted(files: FileSet): Promise<Checkpoint> {
  const probed = new Map<string, ByteSource>();
  const has = async (name: string) => {
    const source = await files.open(name);
    if (source !== undefined) probed.set(name, source);
    return source !== undefined;
  };
  const known: FileSet = {
    ...files,
    async open(name) {
      const source = probed.get(name);
      probed.delete(name);
      return source ?? files.open(name);
    },
  };
  try {
    if (!(await has("config.json"))) return await openHuggingFace(known);
    for (const name of [SINGLE_FILE, INDEX_FILE]) if (await has(name)) return await openHuggingFace(known);
    for (const stem of ONNX_STEMS) {
      for (const suffix of ONNX_SUFFIXES) {
        const path = `onnx/${stem}${suffix}.onnx`;
        if (await has(path)) return await (await readers.onnx()).openOnnx(known, path);
      }
    }
    return await openHuggingFace(known);
  } finally {
    for (const source of probed.values()) await source.close();
  }
}

function preferred(names: readonly string[]): string | undefined {
  const known = ONNX_STEMS.flatMap((stem) => ONNX_SUFFIXES.map((suffix) => `${stem}${suffix}.onnx`));
  return known.find((name) => names.includes(name)) ?? names.find((name) => name.endsWith(".onnx"));
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

async function exists(files: FileSet, name: string): Promise<boolean> {
  const source = await files.open(name);
  await source?.close();
  return source !== undefined;
}

async function required(files: FileSet, name: string): Promise<ByteSource> {
  const source = await files.open(name);
  if (source === undefined) throw new UsageError(`${files.name}: no file ${name}; check its name`);
  return source;
}
