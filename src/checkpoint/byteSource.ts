import { CheckpointError } from "../errors.ts";
import type { ByteSource } from "./checkpoint.ts";

/** Rejects a range that leaves the source, before anything is allocated for it. */
export function checkRange(source: Pick<ByteSource, "name" | "size">, offset: number, length: number): void {
  const valid = Number.isSafeInteger(offset) && Number.isSafeInteger(length) && offset >= 0 && length >= 0;
  if (!valid || offset + length > source.size) {
    const end = valid ? `${offset + length}` : "an impossible position";
    throw new CheckpointError(source.name, `needs bytes up to ${end}, the file has ${source.size}`, {
      offset: valid ? offset : undefined,
      remedy: "the file is truncated or damaged: fetch or export it again",
    });
  }
}

/** Where a read of `length` bytes goes: the first bytes of `target`, or a new array. */
export function readTarget(length: number, target?: Uint8Array): Uint8Array {
  if (target === undefined) return new Uint8Array(length);
  if (target.length < length) {
    throw new RangeError(`a read of ${length} bytes does not fit a target of ${target.length}`);
  }
  return target.length === length ? target : target.subarray(0, length);
}

/** Bytes in memory, read without copying when no target is given. */
export function bufferSource(bytes: Uint8Array, name: string): ByteSource {
  return {
    name,
    size: bytes.length,
    async read(offset, length, target) {
      checkRange(this, offset, length);
      const part = bytes.subarray(offset, offset + length);
      if (target === undefined) return part;
      const into = readTarget(length, target);
      into.set(part);
      return into;
    },
    async close() {},
  };
}
