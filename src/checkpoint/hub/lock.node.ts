/**
 * A lock between processes, as a file that its owner keeps fresh. Node has no flock.
 * It saves work, not correctness: two downloads of one blob write the same bytes to the same places.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { HubSystem } from "./system.node.ts";

const POLL_MS = 200;
const REFRESH_MS = 5000;
/** A lock not refreshed for so long has no owner any more. */
const STALE_MS = 60_000;

/** Runs `body` while holding the lock file `path`; waits for its owner first. */
export async function withLock<T>(
  path: string,
  system: HubSystem,
  signal: AbortSignal | undefined,
  body: () => Promise<T>,
): Promise<T> {
  const owner = JSON.stringify({ host: hostname(), pid: process.pid, id: randomUUID() });
  await mkdir(dirname(path), { recursive: true });
  while (!(await take(path, owner))) {
    await breakStale(path);
    await system.sleep(POLL_MS, signal);
  }
  const refresh = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => {});
  }, REFRESH_MS);
  refresh.unref();
  try {
    return await body();
  } finally {
    clearInterval(refresh);
    if ((await read(path)) === owner) await rm(path, { force: true });
  }
}

async function take(path: string, owner: string): Promise<boolean> {
  try {
    await writeFile(path, owner, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function breakStale(path: string): Promise<void> {
  const owner = await read(path);
  if (owner === undefined || !(await isStale(path, owner))) return;
  // Renaming lets one waiter win; unlinking could hit the lock that a quicker waiter just took.
  const aside = `${path}.${randomUUID()}`;
  await rename(path, aside).catch(() => {});
  await rm(aside, { force: true });
}

async function isStale(path: string, owner: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined) return false;
  if (Date.now() - info.mtimeMs > STALE_MS) return true;
  let parsed: { host?: unknown; pid?: unknown };
  try {
    parsed = JSON.parse(owner);
  } catch {
    return false;
  }
  return parsed?.host === hostname() && typeof parsed.pid === "number" && !isAlive(parsed.pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

async function read(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").catch(() => undefined);
}
