import { CheckpointError, UnsupportedError } from "../../errors.ts";
import type { ByteSource } from "../checkpoint.ts";
import { elementCount } from "../shape.ts";
import { Cursor } from "./cursor.ts";
import { type Metadata, type MetadataValue, readCount, readString, readValue } from "./metadata.ts";
import { GGUF_TYPES, type GgufType } from "./types.ts";

/** A tensor as the header lists it. */
export interface StoredTensor {
  readonly name: string;
  readonly type: GgufType;
  /** Row-major, outermost first (the file lists dimensions innermost first). */
  readonly shape: readonly number[];
  readonly source: ByteSource;
  /** Absolute position of its bytes in `source`. */
  readonly offset: number;
  readonly byteLength: number;
}

export interface Header {
  readonly metadata: Metadata;
  /** Where each metadata value stands, for messages. */
  readonly offsets: ReadonlyMap<string, number>;
  readonly tensors: readonly StoredTensor[];
}

const MAGIC = 0x46554747;
const MAX_DIMENSIONS = 4;
/** The format's limit on keys; no writer makes tensor names longer than that either. */
const MAX_NAME_BYTES = 65535;
/** Tens of times what the largest models hold; bounds what many tiny entries cost in memory. */
const MAX_ENTRIES = 2 ** 17;
const MAX_ALIGNMENT = 2 ** 20;

/**
 * Reads the header of a GGUF file, version 2 or 3, little-endian (specification: ggml's docs/gguf.md).
 * Throws a CheckpointError with the offset for a damaged file; an UnsupportedError for other versions and tensor types.
 */
export async function readHeader(source: ByteSource): Promise<Header> {
  const cursor = new Cursor(source);
  await cursor.need(4, "a GGUF file");
  if (cursor.u32() !== MAGIC) {
    throw new CheckpointError(source.name, "not a GGUF file", { offset: 0, remedy: "name a .gguf file" });
  }
  await cursor.need(4, "the version");
  const version = cursor.u32();
  if (version !== 2 && version !== 3) {
    const kind = version % 65536 === 0 && version > 0 ? "a big-endian GGUF file" : `GGUF version ${version}`;
    throw new UnsupportedError(
      `${source.name}: ${kind}; versions 2 and 3, little-endian, can be read: convert it`,
    );
  }
  // A tensor takes at least 24 bytes of header, a metadata entry 13.
  const tensorCount = await readCount(cursor, 24, "a tensor count");
  const entryCount = await readCount(cursor, 13, "a metadata count");
  if (tensorCount > MAX_ENTRIES || entryCount > MAX_ENTRIES) {
    throw cursor.error(
      `${tensorCount} tensors and ${entryCount} metadata entries, at most ${MAX_ENTRIES} are read`,
    );
  }
  const { metadata, offsets } = await readMetadata(cursor, entryCount);
  const entries: TensorEntry[] = [];
  for (let i = 0; i < tensorCount; i++) entries.push(await readTensorEntry(cursor, source.name));
  const tensors = placeTensors(source, entries, cursor.offset, alignmentOf(source, metadata));
  return { metadata, offsets, tensors };
}

async function readMetadata(cursor: Cursor, count: number): Promise<Pick<Header, "metadata" | "offsets">> {
  const offsets = new Map<string, number>();
  const metadata = new Map<string, MetadataValue>();
  for (let i = 0; i < count; i++) {
    const key = await readString(cursor, "a metadata key", MAX_NAME_BYTES);
    if (metadata.has(key)) throw cursor.error(`metadata key ${quote(key)} appears twice`);
    offsets.set(key, cursor.offset);
    metadata.set(key, await readValue(cursor, quote(key)));
  }
  return { metadata, offsets };
}

interface TensorEntry {
  readonly name: string;
  readonly type: GgufType;
  readonly shape: number[];
  /** Position in the data section. */
  readonly position: number;
  readonly byteLength: number;
  /** Where the entry itself stands, for messages. */
  readonly entryOffset: number;
}

async function readTensorEntry(cursor: Cursor, file: string): Promise<TensorEntry> {
  const entryOffset = cursor.offset;
  const name = await readString(cursor, "a tensor name", MAX_NAME_BYTES);
  await cursor.need(4, name);
  const dimensions = cursor.u32();
  if (dimensions > MAX_DIMENSIONS) throw cursor.error(`tensor ${quote(name)} has ${dimensions} dimensions`);
  await cursor.need(8 * dimensions + 12, `tensor ${quote(name)}`);
  const shape: number[] = [];
  for (let i = 0; i < dimensions; i++) shape.unshift(cursor.u64());
  const typeNumber = cursor.u32();
  const position = cursor.u64();
  const type = GGUF_TYPES.get(typeNumber);
  if (type === undefined) {
    throw new UnsupportedError(
      `${file} at byte ${entryOffset}: tensor ${quote(name)} is of type ${typeNumber}; ` +
        `${[...GGUF_TYPES.values()].map((known) => known.name).join(", ")} can be read`,
    );
  }
  const count = elementCount(shape);
  const rowLength = shape.at(-1) ?? 1;
  if (count === undefined || rowLength % type.blockSize !== 0) {
    throw cursor.error(
      `tensor ${quote(name)} of type ${type.name} cannot have the shape [${shape.join(", ")}]`,
    );
  }
  return { name, type, shape, position, byteLength: (count / type.blockSize) * type.blockBytes, entryOffset };
}

function alignmentOf(source: ByteSource, metadata: Metadata): number {
  const alignment = metadata.get("general.alignment") ?? 32;
  if (
    typeof alignment !== "number" ||
    !(alignment > 0 && alignment <= MAX_ALIGNMENT) ||
    !isPowerOfTwo(alignment)
  ) {
    throw new CheckpointError(
      source.name,
      `general.alignment of ${alignment}, not a power of two up to 2^20`,
    );
  }
  return alignment;
}

function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(value) && (value & (value - 1)) === 0;
}

/** Turns positions into file offsets; each tensor must be aligned, inside the file, and apart from the others. */
function placeTensors(
  source: ByteSource,
  entries: readonly TensorEntry[],
  headerEnd: number,
  alignment: number,
): StoredTensor[] {
  const dataStart = Math.ceil(headerEnd / alignment) * alignment;
  const names = new Set<string>();
  const tensors = entries.map(({ name, type, shape, position, byteLength, entryOffset }): StoredTensor => {
    const fail = (problem: string) =>
      new CheckpointError(source.name, `tensor ${quote(name)} ${problem}`, { offset: entryOffset });
    if (names.has(name)) throw fail("appears twice");
    names.add(name);
    if (position % alignment !== 0) throw fail(`begins at ${position}, not a multiple of ${alignment}`);
    const offset = dataStart + position;
    if (!(offset + byteLength <= source.size)) {
      throw fail(`ends at byte ${offset + byteLength}, the file has ${source.size}`);
    }
    return { name, type, shape, source, offset, byteLength };
  });
  const inOrder = tensors.filter((tensor) => tensor.byteLength > 0).sort((a, b) => a.offset - b.offset);
  for (let i = 1; i < inOrder.length; i++) {
    const [before, tensor] = [inOrder[i - 1], inOrder[i]];
    if (before.offset + before.byteLength > tensor.offset) {
      throw new CheckpointError(
        source.name,
        `tensors ${quote(before.name)} and ${quote(tensor.name)} overlap`,
        {
          offset: tensor.offset,
        },
      );
    }
  }
  return tensors;
}

/** A name from the file, fit for a message: shortened, control characters escaped. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}...` : name);
}
