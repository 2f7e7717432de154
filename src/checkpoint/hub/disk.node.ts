/**
 * What a failing file system means for the user.
 *
 * @module
 */
import { HalftoneError } from "../../errors.ts";

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file system holds no file of that size",
  EACCES: "no permission",
  EPERM: "no permission",
  EROFS: "the file system is read-only",
  ENOTDIR: "a file is where a folder should be",
  EISDIR: "a folder is where a file should be",
  EIO: "the disk fails",
  EMFILE: "too many open files",
};

/** Turns an error of the file system into one for the user; any other comes back unchanged. */
export function diskError(error: unknown, what: string, folder: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  const problem = code === undefined ? undefined : PROBLEMS[code];
  if (error instanceof HalftoneError || problem === undefined) return error;
  const full = code === "ENOSPC" || code === "EDQUOT";
  const remedy = full
    ? "free some space or set HF_HUB_CACHE to a folder on another disk; what came is kept and the next pull continues"
    : "set HF_HUB_CACHE to a folder that can be written";
  return new HalftoneError(`${what}: ${problem} in ${folder} (${message}); ${remedy}`, { cause: error });
}
