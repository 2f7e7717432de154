import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { CheckpointError, UsageError } from "../errors.ts";
import { checkRange, readTarget } from "./byteSource.ts";
import type { ByteSource } from "./checkpoint.ts";
import type { FileSet } from "./huggingface/fileSet.ts";

/** Linux transfers at most 2^31 - 4096 bytes a call. */
const MAX_READ = 2 ** 30;

/** Opens a file for positional reads. A missing or unreadable file is a UsageError. */
export async function openFile(path: string): Promise<ByteSource> {
  let size: number;
  const handle = await open(path, "r").catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  try {
    const info = await handle.stat();
    if (!info.isFile()) throw new UsageError(`${path}: not a file; name a file`);
    size = info.size;
  } catch (error) {
    await handle.close();
    throw error;
  }
  const extent = { name: path, size };
  return {
    ...extent,
    descriptor: handle.fd,
    async read(offset, length, target) {
      checkRange(extent, offset, length);
      const into = readTarget(length, target);
      for (let done = 0; done < length; ) {
        const { bytesRead } = await handle
          .read(into, done, Math.min(length - done, MAX_READ), offset + done)
          .catch((cause: unknown) => {
            throw new CheckpointError(path, `cannot be read (${reason(cause)})`, {
              offset: offset + done,
              cause,
            });
          });
        if (bytesRead === 0) {
          throw new CheckpointError(path, "ends earlier than when it was opened", { offset: offset + done });
        }
        done += bytesRead;
      }
      return into;
    },
    close: () => handle.close(),
  };
}

/** The files of a folder on disk; names with separators are looked up below it. */
export function folderFiles(folder: string): FileSet {
  return {
    name: folder,
    async open(file) {
      const path = join(folder, file);
      const info = await stat(path).catch(() => undefined);
      return info?.isFile() ? openFile(path) : undefined;
    },
    async list(subfolder = ".") {
      const path = join(folder, subfolder);
      const entries = await readdir(path, { withFileTypes: true }).catch((cause: unknown) => {
        if (["ENOENT", "ENOTDIR"].includes(reason(cause))) return [];
        throw unreadable(path, cause);
      });
      return entries.map((entry) => entry.name).sort();
    },
  };
}

/**
 * Checks a file against its published sha256 (hex), streaming.
 * Throws a CheckpointError when it differs.
 */
export async function verifySha256(path: string, expected: string): Promise<void> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(chunk);
  } catch (cause) {
    throw unreadable(path, cause);
  }
  const found = hash.digest("hex");
  if (found !== expected.toLowerCase()) {
    throw new CheckpointError(path, `sha256 is ${found}, expected ${expected}`, {
      remedy: "the file was altered or damaged: install or fetch it again",
    });
  }
}

function reason(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
}

function unreadable(path: string, cause: unknown): UsageError {
  const missing = reason(cause) === "ENOENT";
  const problem = missing ? "no such file" : `cannot be opened (${reason(cause)})`;
  return new UsageError(`${path}: ${problem}; check the path`, { cause });
}
