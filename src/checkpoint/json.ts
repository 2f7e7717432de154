import { CheckpointError } from "../errors.ts";
import type { ByteSource } from "./checkpoint.ts";

/** Larger than any tokenizer.json in use; keeps a mistaken file from being read as text. */
const MAX_JSON_BYTES = 256 * 2 ** 20;
/** Lists and objects of a text: twice those of the largest tokenizer.json in use (half a million merges). */
const MAX_CONTAINERS = 2 ** 20;
/** Separators of a text, about its values. */
const MAX_VALUES = 2 ** 22;

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
  checkStructure(bytes, file, offset);
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

/** Bounds what parsing makes: an empty list takes three bytes of a file and some fifty of memory. */
function checkStructure(bytes: Uint8Array, file: string, offset: number): void {
  let containers = 0;
  let values = 0;
  for (const byte of bytes) {
    if (byte === 0x2c) values++;
    else if (byte === 0x5b || byte === 0x7b) containers++;
  }
  if (containers > MAX_CONTAINERS || values > MAX_VALUES) {
    const problem = `JSON of ${containers} lists and objects and ${values} separators`;
    throw new CheckpointError(file, `${problem}, at most ${MAX_CONTAINERS} and ${MAX_VALUES} are read`, {
      offset,
    });
  }
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
