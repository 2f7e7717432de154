/**
 * Model files that the user picked or dropped: `File` and `Blob` objects, read by slices.
 *
 * @module
 */
import { CheckpointError, UsageError } from "../errors.ts";
import { checkRange, readTarget } from "./byteSource.ts";
import type { ByteSource } from "./checkpoint.ts";
import type { FileSet } from "./huggingface/fileSet.ts";

/** A blob's bytes; nothing is read before it is asked for. */
export function blobSource(blob: Blob, name: string): ByteSource {
  return {
    name,
    size: blob.size,
    async read(offset, length, target) {
      checkRange(this, offset, length);
      const slice = blob.slice(offset, offset + length);
      const bytes = await slice.arrayBuffer().catch((cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new CheckpointError(name, `cannot be read (${reason})`, {
          offset,
          remedy: "it was moved or changed after it was picked: pick it again",
          cause,
        });
      });
      if (target === undefined) return new Uint8Array(bytes);
      const into = readTarget(length, target);
      into.set(new Uint8Array(bytes));
      return into;
    },
    async close() {},
  };
}

/**
 * The files of one model: those of a folder picker (`<input type="file" webkitdirectory>`), whose common folder is
 * the set's, or files one by one. Blobs without a name cannot be told apart.
 */
export function blobFiles(blobs: Iterable<Blob>): FileSet {
  const files = new Map<string, Blob>();
  for (const blob of blobs) {
    const { name, webkitRelativePath: path } = blob as Partial<File>;
    if (name === undefined)
      throw new UsageError("a Blob without a name; give File objects: new File([blob], name)");
    // The first part is the picked folder.
    const inside = path ? path.slice(path.indexOf("/") + 1) : name;
    if (files.has(inside)) throw new UsageError(`two files named ${inside}; give the files of one model`);
    files.set(inside, blob);
  }
  return {
    name: "the files given",
    async open(file) {
      const blob = files.get(file);
      return blob && blobSource(blob, file);
    },
    async list(subfolder) {
      const prefix = subfolder === undefined ? "" : `${subfolder}/`;
      const below = [...files.keys()].filter((path) => path.startsWith(prefix));
      return [...new Set(below.map((path) => path.slice(prefix.length).split("/")[0]))].sort();
    },
  };
}
