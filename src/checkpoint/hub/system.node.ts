/**
 * What the hub code asks of the machine, gathered so that a test can make it fail.
 *
 * @module
 */
import { type FileHandle, open, statfs, symlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";

/** A file being downloaded. */
export interface BlobFile {
  /** Makes the file exactly `size` bytes long; new bytes take no room yet. */
  truncate(size: number): Promise<void>;
  /** Writes all of `bytes` at `position`. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Waits until the bytes are on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The machine: network, clock and disk. */
export interface HubSystem {
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** Rejects with the signal's reason when aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Opens for writing, creating the file when it is absent and keeping its bytes when it is there. */
  open(path: string): Promise<BlobFile>;
  /** Free bytes of the file system that holds `folder`, which need not exist yet; undefined when unknown. */
  freeBytes(folder: string): Promise<number | undefined>;
  symlink(target: string, path: string): Promise<void>;
}

/** Node's own. */
export const nodeSystem: HubSystem = {
  fetch: (url, init) => fetch(url, init),
  async sleep(milliseconds, signal) {
    await setTimeout(milliseconds, undefined, { signal }).catch(() => signal?.throwIfAborted());
  },
  open: async (path) => blobFile(await openExisting(path)),
  async freeBytes(folder) {
    for (let each = folder; ; each = dirname(each))
      try {
        const { bavail, blocks, bsize } = await statfs(each);
        // Some network file systems say 0 blocks: they do not know.
        return blocks === 0 ? undefined : bavail * bsize;
      } catch {
        if (each === dirname(each)) return undefined;
      }
  },
  symlink: (target, path) => symlink(target, path),
};

async function openExisting(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return await open(path, "w+");
  }
}

function blobFile(handle: FileHandle): BlobFile {
  return {
    truncate: (size) => handle.truncate(size),
    async write(bytes, position) {
      for (let done = 0; done < bytes.length; )
        done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
    },
    sync: () => handle.sync(),
    close: () => handle.close(),
  };
}
