import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { UsageError } from "../errors.ts";

/** Marks a folder as unfinished work of ours, so that it may be removed; holds the writer's process id. */
const MARKER = ".halftone-partial";

/** A folder that appears under its name only when it is complete. */
export interface OutputFolder {
  /** Where to write meanwhile. */
  readonly path: string;
  /** Moves the folder to its name. */
  finish(): Promise<void>;
  /** Removes what was written; does nothing after `finish`. */
  abort(): Promise<void>;
  /** Whether `path` holds what an earlier, unfinished run wrote. */
  readonly resumed: boolean;
}

export interface FolderOptions {
  /** Keeps what an unfinished run left, if this says so of its folder. Default: it is removed. */
  readonly resume?: (path: string) => Promise<boolean>;
}

/**
 * Starts a folder beside its destination. Throws a UsageError when the destination exists and
 * is not empty, or when another process is writing it; what a crash left is removed.
 */
export async function createFolder(
  destination: string,
  { resume }: FolderOptions = {},
): Promise<OutputFolder> {
  const folder = withoutSlash(destination);
  const path = partialOf(destination);
  await requireEmpty(folder);
  const leftover = await requireOurs(path, folder);
  const resumed = leftover && resume !== undefined && (await resume(path));
  if (leftover && !resumed) await rm(path, { recursive: true, force: true });
  await makeFolder(path, folder);
  await writeFile(join(path, MARKER), String(process.pid)).catch((cause: unknown) => {
    throw unwritable(folder, cause);
  });
  let done = false;
  return {
    path,
    resumed,
    async finish() {
      await requireEmpty(folder);
      await rmdir(folder).catch(() => undefined);
      await rm(join(path, MARKER));
      await rename(path, folder).catch((cause: unknown) => {
        throw unwritable(folder, cause);
      });
      done = true;
    },
    async abort() {
      if (!done) await rm(path, { recursive: true, force: true });
      done = true;
    },
  };
}

/** Throws the UsageError with which {@link createFolder} would refuse a destination. */
export async function requireFree(destination: string): Promise<void> {
  const folder = withoutSlash(destination);
  await requireEmpty(folder);
  await requireOurs(partialOf(folder), folder);
}

/**
 * Makes `path` and the folders above it that are missing. Not in one recursive call: where the system says that a
 * name does not exist however often its parent is made (/proc), Node's never ends.
 */
async function makeFolder(path: string, folder: string): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = await stat(at).catch(() => undefined);
    if (found) break;
    missing.unshift(at);
    if (at === dirname(at)) break;
  }
  for (const each of missing) {
    await mkdir(each).catch((cause: NodeJS.ErrnoException) => {
      // Another process may make the same parent at the same time.
      if (cause.code !== "EEXIST") throw unwritable(folder, cause);
    });
  }
}

/** Where a folder is written before it is complete. */
export function partialOf(destination: string): string {
  return `${withoutSlash(destination)}.partial`;
}

function withoutSlash(destination: string): string {
  return destination.replace(/[\\/]+$/, "") || destination;
}

/** The error for a failed write, with the system's reason. */
export function unwritable(path: string, cause: unknown): UsageError {
  const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
  const remedy = code === "ENOSPC" ? "free some space" : "choose another place";
  return new UsageError(`${path}: cannot be written (${code}); ${remedy}`, { cause });
}

async function requireEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw unwritable(folder, error);
  });
  if (names.length > 0) {
    throw new UsageError(
      `${folder}: exists and is not empty (${names[0]}, ...); remove it or choose another folder`,
    );
  }
}

/** Whether an unfinished run left its folder; throws a UsageError when it is not ours to take. */
async function requireOurs(path: string, folder: string): Promise<boolean> {
  const names = await readdir(path).catch(() => undefined);
  if (names === undefined) return false;
  const owner = await readFile(join(path, MARKER), "utf8").catch(() => undefined);
  if (owner === undefined && names.length > 0) {
    throw new UsageError(`${path}: in the way, and not ours to remove; move it or choose another folder`);
  }
  const pid = Number(owner);
  if (Number.isInteger(pid) && pid > 0 && pid !== process.pid && isRunning(pid)) {
    throw new UsageError(`${folder}: being written by process ${pid}; wait for it or choose another folder`);
  }
  return true;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
