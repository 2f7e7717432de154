/**
 * The user's cache, where what was measured on this machine stays.
 *
 * @module
 */
import { mkdir, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";

/** `$XDG_CACHE_HOME/halftone`, else `~/.cache/halftone`. */
export function userCache(env = process.env): string {
  return join(env.XDG_CACHE_HOME ? resolve(env.XDG_CACHE_HOME) : join(homedir(), ".cache"), "halftone");
}

/** Replaces a file, which is whole at any time whoever else writes it; makes the folders above it. */
export async function replaceFile(path: string, data: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}.partial`;
  await writeFile(partial, data);
  await rename(partial, path);
}
