import { CheckpointError, UsageError } from "../../errors.ts";
import type { ByteSource, Checkpoint, TokenizerFiles } from "../checkpoint.ts";
import { isJsonObject, type JsonObject, readJsonObject, readText } from "../json.ts";
import { openModelSafetensors } from "../safetensors/reader.ts";
import type { FileSet } from "./fileSet.ts";

/** Everything of a Hugging Face model folder but its weights. */
export interface ModelFiles {
  readonly config: JsonObject;
  readonly generationConfig: JsonObject;
  readonly tokenizer: TokenizerFiles | undefined;
}

/** Reads config.json, generation_config.json and the tokenizer's files. */
export async function readModelFiles(files: FileSet): Promise<ModelFiles> {
  const config = await readOptional(files, "config.json", readJsonObject);
  if (config === undefined) {
    const found = await describe(files);
    throw new UsageError(
      `${files.name} is no model: no config.json; ${found}; name a Hugging Face model folder`,
    );
  }
  const generationConfig = (await readOptional(files, "generation_config.json", readJsonObject)) ?? {};
  return { config, generationConfig, tokenizer: await readTokenizer(files) };
}

/** Opens a folder of config.json, tokenizer files and safetensors weights, single or sharded. */
export async function openHuggingFace(files: FileSet): Promise<Checkpoint> {
  const modelFiles = await readModelFiles(files);
  const weights = await openModelSafetensors(files);
  if (weights === undefined) {
    const names = await files.list();
    const torch = names.some((name) => /\.(bin|pth?|ckpt)$/.test(name));
    const remedy = torch
      ? "it holds PyTorch pickles: save the model with save_pretrained(..., safe_serialization=True)"
      : "name a folder with weights";
    throw new UsageError(
      `${files.name} is no model: no model.safetensors; ${await describe(files)}; ${remedy}`,
    );
  }
  return {
    source: files.name,
    format: "safetensors",
    ...modelFiles,
    tensors: weights.tensors,
    openFile: (file) => files.open(file),
    close: weights.close,
  };
}

/** The tokenizer's files, or undefined when there is no tokenizer.json. */
async function readTokenizer(files: FileSet): Promise<TokenizerFiles | undefined> {
  const tokenizer = await readOptional(files, "tokenizer.json", readJsonObject);
  if (tokenizer === undefined) return undefined;
  const special = (await readOptional(files, "special_tokens_map.json", readJsonObject)) ?? {};
  const own = (await readOptional(files, "tokenizer_config.json", readJsonObject)) ?? {};
  const config = { ...plainSpecialTokens(special), ...plainSpecialTokens(own) };
  const template =
    (await readOptional(files, "chat_template.jinja", readText)) ??
    pickTemplate(config.chat_template, files.name) ??
    (await readOptional(files, "chat_template.json", async (source) =>
      pickTemplate((await readJsonObject(source)).chat_template, files.name),
    ));
  delete config.chat_template;
  return { tokenizer, config, ...(template === undefined ? {} : { chatTemplate: template }) };
}

/** Special tokens are stored as strings or as `{content, lstrip, ...}`: keeps the string. */
function plainSpecialTokens(config: JsonObject): JsonObject {
  const plain = (value: unknown) =>
    isJsonObject(value) && typeof value.content === "string" ? value.content : value;
  const entries = Object.entries(config)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => {
      if (key.endsWith("_token")) return [key, plain(value)];
      if (key === "additional_special_tokens" && Array.isArray(value)) return [key, value.map(plain)];
      return [key, value];
    });
  return Object.fromEntries(entries) as JsonObject;
}

/** A chat template is one string, or a list of named ones whose "default" is meant. */
function pickTemplate(value: unknown, file: string): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  const list = Array.isArray(value) ? value.filter(isJsonObject) : [];
  const chosen = list.find((item) => item.name === "default") ?? list[0];
  if (typeof chosen?.template === "string") return chosen.template;
  throw new CheckpointError(file, "chat_template is neither a string nor a list of named templates");
}

async function readOptional<T>(
  files: FileSet,
  name: string,
  read: (source: ByteSource) => Promise<T>,
): Promise<T | undefined> {
  const source = await files.open(name);
  if (source === undefined) return undefined;
  try {
    return await read(source);
  } finally {
    await source.close();
  }
}

async function describe(files: FileSet): Promise<string> {
  const names = await files.list();
  if (names.length === 0) return "it holds no files";
  return `it holds ${names.slice(0, 8).join(", ")}${names.length > 8 ? ` and ${names.length - 8} more` : ""}`;
}
