import { CheckpointError } from "../errors.ts";
import type { ByteSource } from "./checkpoint.ts";

/** Larger than any tokenizer.json in use; keeps a mistaken file from being read as text. */
const MAX_JSON_BYTES = 256 * 2 ** 20;

export type JsonObject = Record<string, unknown>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Strict UTF-8. `offset` is where `bytes` start in `file`, for the message. */
export function decodeUtf8(bytes: Uint8Array, file: string, offset = 0): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new CheckpointError(file, "text that is not UTF-8", { offset, cause });
  }
}

/** Parses bytes that must be one JSON object. */
export function parseJsonObject(bytes: Uint8Array, file: string, offset = 0): JsonObject {
  const text = decodeUtf8(bytes, file, offset);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/\s+/g, " ").slice(0, 160) : "unreadable";
    throw new CheckpointError(file, `broken JSON (${reason})`, { offset, cause });
  }
  if (!isJsonObject(value)) throw new CheckpointError(file, "JSON, but not an object", { offset });
  return value;
}

/** Reads a whole source as text. */
export async function readText(source: ByteSource): Promise<string> {
  return decodeUtf8(await readSmall(source), source.name);
}

/** Reads a whole source as one JSON object. */
export async function readJsonObject(source: ByteSource): Promise<JsonObject> {
  return parseJsonObject(await readSmall(source), source.name);
}

function readSmall(source: ByteSource): Promise<Uint8Array> {
  if (source.size > MAX_JSON_BYTES) {
    throw new CheckpointError(source.name, `${source.size} bytes of text, more than ${MAX_JSON_BYTES}`);
  }
  return source.read(0, source.size);
}
