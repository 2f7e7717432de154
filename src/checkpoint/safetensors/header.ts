import { CheckpointError } from "../../errors.ts";
import type { ByteSource } from "../checkpoint.ts";
import { DTYPE_BYTES, type Dtype, isDtype } from "../dtype.ts";
import { isJsonObject, parseJsonObject } from "../json.ts";
import { elementCount } from "../shape.ts";

/**
 * The header of a safetensors file: 8 bytes of length, then JSON that maps each name to
 * dtype, shape and byte range. Validation follows the format's reference implementation:
 * ranges are contiguous, in order, and end with the file.
 * Source: https://github.com/huggingface/safetensors, "Format".
 *
 * @module
 */

const MAX_HEADER_BYTES = 100_000_000;
const ALIGNMENT = 8;

export interface TensorEntry {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

export interface StoredEntry extends TensorEntry {
  /** Position in the file. */
  readonly offset: number;
  readonly byteLength: number;
}

export interface Header {
  readonly entries: StoredEntry[];
  readonly metadata: Record<string, string>;
}

/** Bytes an entry takes. */
export function entryBytes(entry: TensorEntry): number {
  const count = elementCount(entry.shape);
  const bytes = count === undefined ? Number.NaN : count * DTYPE_BYTES[entry.dtype];
  if (!Number.isSafeInteger(bytes)) throw new RangeError(`${entry.name}: impossible shape [${entry.shape}]`);
  return bytes;
}

/** Reads and validates the header; throws a CheckpointError that names the tensor and the byte. */
export async function readHeader(source: ByteSource): Promise<Header> {
  const file = source.name;
  if (source.size < 8)
    throw new CheckpointError(file, `${source.size} bytes are no safetensors file`, { offset: 0 });
  const prefix = await source.read(0, 8);
  const view = new DataView(prefix.buffer, prefix.byteOffset, 8);
  const length = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
  if (length > MAX_HEADER_BYTES || length > source.size - 8) {
    const problem = `claims a header of ${length} bytes in a file of ${source.size}`;
    throw new CheckpointError(file, problem, { offset: 0, remedy: "it is truncated or no safetensors file" });
  }
  const json = await source.read(8, length);
  if (json[0] !== 0x7b) throw new CheckpointError(file, "the header does not start with {", { offset: 8 });
  const header = parseJsonObject(json, file, 8);
  const dataStart = 8 + length;
  const entries: StoredEntry[] = [];
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(header)) {
    if (name === "__metadata__") metadata = checkMetadata(value, file);
    else entries.push(checkEntry(name, value, dataStart, file));
  }
  checkLayout(entries, dataStart, source);
  return { entries, metadata };
}

function checkMetadata(value: unknown, file: string): Record<string, string> {
  if (!isJsonObject(value) || Object.values(value).some((text) => typeof text !== "string")) {
    throw new CheckpointError(file, "__metadata__ is no map of strings", { offset: 8 });
  }
  return value as Record<string, string>;
}

function checkEntry(name: string, value: unknown, dataStart: number, file: string): StoredEntry {
  const fail = (problem: string): never => {
    throw new CheckpointError(file, `tensor ${JSON.stringify(name.slice(0, 200))}: ${problem}`, {
      offset: 8,
    });
  };
  if (!isJsonObject(value)) return fail("its entry is no object");
  const { dtype, shape, data_offsets: range } = value;
  if (!isDtype(dtype)) return fail(`unknown dtype ${String(JSON.stringify(dtype)).slice(0, 40)}`);
  const isCounts = (list: unknown): list is number[] =>
    Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  if (!isCounts(shape)) return fail("shape is no list of counts");
  if (!isCounts(range) || range.length !== 2 || range[1] < range[0]) return fail("data_offsets is no range");
  const count = elementCount(shape);
  const byteLength = range[1] - range[0];
  if (count === undefined || count * DTYPE_BYTES[dtype] !== byteLength) {
    return fail(`${dtype} of shape [${shape.slice(0, 8)}] does not fill its ${byteLength} bytes`);
  }
  return { name, dtype, shape, offset: dataStart + range[0], byteLength };
}

function checkLayout(entries: StoredEntry[], dataStart: number, source: ByteSource): void {
  entries.sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  let end = dataStart;
  for (const { name, offset, byteLength } of entries) {
    if (offset !== end) {
      const problem = `tensor ${JSON.stringify(name.slice(0, 200))} ${offset < end ? "overlaps another" : "follows a hole"}`;
      throw new CheckpointError(source.name, problem, { offset });
    }
    end = offset + byteLength;
  }
  if (end !== source.size) {
    const problem = `its tensors end at byte ${end}, the file has ${source.size}`;
    throw new CheckpointError(source.name, problem, { offset: Math.min(end, source.size) });
  }
}

/**
 * Builds a header. Wider element types go first, so that every tensor is aligned to its
 * element; within a width the given order stays. Equal input gives equal bytes.
 */
export function buildHeader(
  entries: readonly TensorEntry[],
  metadata: Readonly<Record<string, string>> = {},
): { bytes: Uint8Array; entries: StoredEntry[]; size: number } {
  const ordered = [...entries].sort((a, b) => DTYPE_BYTES[b.dtype] - DTYPE_BYTES[a.dtype]);
  const pairs: [string, unknown][] = [];
  if (Object.keys(metadata).length > 0) pairs.push(["__metadata__", metadata]);
  let position = 0;
  const relative: StoredEntry[] = [];
  const names = new Set(["__metadata__"]);
  for (const { name, dtype, shape } of ordered) {
    if (names.has(name)) throw new RangeError(`two tensors are named ${name}`);
    names.add(name);
    const byteLength = entryBytes({ name, dtype, shape });
    pairs.push([name, { dtype, shape, data_offsets: [position, position + byteLength] }]);
    relative.push({ name, dtype, shape, offset: position, byteLength });
    position += byteLength;
  }
  // Written pair by pair: an object would move integer-like names to the front.
  const text = `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`;
  const json = new TextEncoder().encode(text);
  const padded = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const bytes = new Uint8Array(8 + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(json, 8);
  const stored = relative.map((entry) => ({ ...entry, offset: entry.offset + bytes.length }));
  return { bytes, entries: stored, size: bytes.length + position };
}
