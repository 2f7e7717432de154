import { type FileHandle, open, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { unwritable } from "../outputFolder.node.ts";
import { buildHeader, entryBytes, type StoredEntry, type TensorEntry } from "./header.ts";
import { INDEX_FILE, SINGLE_FILE } from "./reader.ts";
import { DEFAULT_SHARD_BYTES, METADATA, splitShards } from "./shards.ts";

/** One read call takes less than 2 GB. */
const READ_BYTES = 2 ** 28;

/** A file, or several shards, being written under temporary names. */
export interface SafetensorsWriter {
  /** Writes bytes of a tensor at `at` within it; tensors and their pieces may come in any order. */
  write(name: string, bytes: Uint8Array, at?: number): Promise<void>;
  /** Writes bytes over others of a tensor, which were or will be counted. */
  replace(name: string, bytes: Uint8Array, at?: number): Promise<void>;
  /** Gives the files their names; throws a RangeError when a tensor is incomplete. */
  finish(): Promise<void>;
  /** Bytes of a tensor as they are in the file: all, or `byteLength` of them at `at`. */
  read(name: string, at?: number, byteLength?: number): Promise<Uint8Array>;
  /** Counts a tensor that an earlier run wrote, or `byteLength` of its bytes, as written. */
  accept(name: string, byteLength?: number): void;
  /** Removes what was written; does nothing after `finish`. */
  abort(): Promise<void>;
  /** Leaves the files as they are under their temporary names, for {@link WriterOptions.resume}. */
  suspend(): Promise<void>;
}

export interface WriterOptions {
  /** Most tensor bytes in one file, default 4 GB; a larger tensor has a file of its own. */
  maxShardBytes?: number;
  /** Continues files that were suspended or left by a crash, where their headers are the same. */
  resume?: boolean;
}

/** Starts one safetensors file. All shapes are known beforehand; their bytes come later. */
export async function createSafetensors(
  path: string,
  tensors: readonly TensorEntry[],
  metadata?: Readonly<Record<string, string>>,
  resume = false,
): Promise<SafetensorsWriter> {
  const { bytes: header, entries, size } = buildHeader(tensors, metadata);
  const byName = new Map<string, StoredEntry & { left: number }>();
  for (const entry of entries) byName.set(entry.name, { ...entry, left: entry.byteLength });
  const temporary = `${path}.partial`;
  const handle =
    (resume ? await reopen(temporary, header, size) : undefined) ??
    (await open(temporary, "w+").catch((cause: unknown) => {
      throw unwritable(path, cause);
    }));
  let done = false;
  const abort = async () => {
    if (done) return;
    done = true;
    await handle.close();
    await rm(temporary, { force: true });
  };
  try {
    await writeAll(handle, path, header, 0);
    await handle.truncate(size);
  } catch (error) {
    await abort();
    throw error;
  }
  const place = (name: string, at: number, length: number) => {
    const entry = byName.get(name);
    if (entry === undefined) throw new RangeError(`${path}: no tensor ${name} was announced`);
    if (at < 0 || at + length > entry.byteLength) {
      throw new RangeError(`${path}: ${length} bytes at ${at} leave ${name} of ${entry.byteLength}`);
    }
    return entry;
  };
  return {
    abort,
    async suspend() {
      if (!done) await handle.close();
      done = true;
    },
    async read(name, from = 0, byteLength) {
      const entry = byName.get(name);
      if (entry === undefined) throw new RangeError(`${path}: no tensor ${name} was announced`);
      const bytes = new Uint8Array(byteLength ?? entry.byteLength - from);
      for (let at = 0; at < bytes.length; at += READ_BYTES) {
        await handle.read(bytes, at, Math.min(READ_BYTES, bytes.length - at), entry.offset + from + at);
      }
      return bytes;
    },
    accept(name, byteLength) {
      const entry = byName.get(name);
      if (entry !== undefined) entry.left -= byteLength ?? entry.left;
    },
    async write(name, bytes, at = 0) {
      const entry = place(name, at, bytes.length);
      if (bytes.length > entry.left) throw new RangeError(`${path}: ${name} was written already`);
      await writeAll(handle, path, bytes, entry.offset + at);
      entry.left -= bytes.length;
    },
    async replace(name, bytes, at = 0) {
      await writeAll(handle, path, bytes, place(name, at, bytes.length).offset + at);
    },
    async finish() {
      const unfinished = [...byName.values()].find((entry) => entry.left > 0);
      if (unfinished !== undefined) {
        await abort();
        throw new RangeError(`${path}: ${unfinished.left} bytes of ${unfinished.name} were never written`);
      }
      done = true;
      await handle.sync();
      await handle.close();
      await rename(temporary, path);
    },
  };
}

/** Starts `model.safetensors` in a folder, or numbered shards and their index when it would be too large. */
export async function createModelSafetensors(
  folder: string,
  tensors: readonly TensorEntry[],
  { maxShardBytes = DEFAULT_SHARD_BYTES, resume }: WriterOptions = {},
): Promise<SafetensorsWriter> {
  const shards = splitShards(tensors, maxShardBytes);
  if (shards.length <= 1) return createSafetensors(join(folder, SINGLE_FILE), tensors, METADATA, resume);
  const number = (n: number) => String(n).padStart(5, "0");
  const writers: SafetensorsWriter[] = [];
  const owner = new Map<string, SafetensorsWriter>();
  const weightMap: Record<string, string> = {};
  const abort = async () => {
    await Promise.all(writers.map((writer) => writer.abort()));
  };
  try {
    for (const [i, shard] of shards.entries()) {
      const file = `model-${number(i + 1)}-of-${number(shards.length)}.safetensors`;
      const writer = await createSafetensors(join(folder, file), shard, METADATA, resume);
      writers.push(writer);
      for (const { name } of shard) {
        owner.set(name, writer);
        weightMap[name] = file;
      }
    }
  } catch (error) {
    await abort();
    throw error;
  }
  const totalSize = tensors.reduce((sum, entry) => sum + entryBytes(entry), 0);
  const ownerOf = (name: string): SafetensorsWriter => {
    const writer = owner.get(name);
    if (writer === undefined) throw new RangeError(`${folder}: no tensor ${name} was announced`);
    return writer;
  };
  return {
    abort,
    async suspend() {
      await Promise.all(writers.map((writer) => writer.suspend()));
    },
    read: async (name, at, byteLength) => ownerOf(name).read(name, at, byteLength),
    accept: (name, byteLength) => ownerOf(name).accept(name, byteLength),
    write: async (name, bytes, at) => ownerOf(name).write(name, bytes, at),
    replace: async (name, bytes, at) => ownerOf(name).replace(name, bytes, at),
    async finish() {
      try {
        for (const writer of writers) await writer.finish();
      } catch (error) {
        await abort();
        throw error;
      }
      const index = { metadata: { total_size: totalSize }, weight_map: weightMap };
      await writeFile(join(folder, INDEX_FILE), `${JSON.stringify(index, null, 2)}\n`);
    },
  };
}

/** An unfinished file, when it has this header and size. */
async function reopen(path: string, header: Uint8Array, size: number): Promise<FileHandle | undefined> {
  const handle = await open(path, "r+").catch(() => undefined);
  if (handle === undefined) return undefined;
  const found = new Uint8Array(header.length);
  await handle.read(found, 0, found.length, 0);
  const same = (await handle.stat()).size === size && found.every((byte, i) => byte === header[i]);
  if (same) return handle;
  await handle.close();
  return undefined;
}

async function writeAll(
  handle: FileHandle,
  path: string,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const length = Math.min(bytes.length - done, 2 ** 30);
    const { bytesWritten } = await handle
      .write(bytes, done, length, position + done)
      .catch((cause: unknown) => {
        throw unwritable(path, cause);
      });
    done += bytesWritten;
  }
}
