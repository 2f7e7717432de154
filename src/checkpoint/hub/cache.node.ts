/**
 * The hub cache that Hugging Face's tools share: `models--OWNER--NAME/{blobs,refs,snapshots}`, where a snapshot
 * holds relative links to blobs.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { CheckpointError } from "../../errors.ts";
import { isBlobName, judgePath } from "./listing.ts";
import { isCommit, isRevision } from "./modelId.ts";
import type { HubSystem } from "./system.node.ts";

/** Deepest folder below a snapshot that is looked at. */
const MAX_DEPTH = 8;
const MAX_REF_BYTES = 256;
const TEMPORARY = /\.[0-9a-f-]{36}\.tmp$/;

/** The folder of one repository. */
export interface RepositoryFolder {
  readonly repository: string;
  readonly folder: string;
  /** Where the locks of its downloads lie. */
  readonly locks: string;
}

/** A file of a snapshot. */
export interface SnapshotFile {
  /** Inside the snapshot, with `/`. */
  readonly path: string;
  readonly bytes: number;
}

/** @param repository `OWNER/NAME` as `parseModelId` returns it. */
export function repositoryFolder(cacheFolder: string, repository: string): RepositoryFolder {
  const name = `models--${repository.replace("/", "--")}`;
  return { repository, folder: join(cacheFolder, name), locks: join(cacheFolder, ".locks", name) };
}

/** The repositories of the cache that are named OWNER/NAME. */
export async function cachedRepositories(cacheFolder: string): Promise<RepositoryFolder[]> {
  const names = await readdir(cacheFolder).catch(() => []);
  return names.sort().flatMap((name) => {
    const match = /^models--(.+?)--(.+)$/.exec(name);
    return match === null ? [] : [repositoryFolder(cacheFolder, `${match[1]}/${match[2]}`)];
  });
}

/** The commit that `revision` stood for when it was last pulled; undefined when it never was. */
export async function cachedCommit(
  { folder }: RepositoryFolder,
  revision: string,
): Promise<string | undefined> {
  if (isCommit(revision)) return revision;
  if (!isRevision(revision)) return undefined;
  const path = inside(join(folder, "refs"), revision);
  const info = await stat(path).catch(() => undefined);
  if (info?.isFile() !== true || info.size > MAX_REF_BYTES) return undefined;
  const commit = (await readFile(path, "utf8")).trim();
  return isCommit(commit) ? commit : undefined;
}

/** Notes that `revision` stands for `commit`. */
export async function writeRef(
  repository: RepositoryFolder,
  revision: string,
  commit: string,
): Promise<void> {
  if (revision === commit || (await cachedCommit(repository, revision)) === commit) return;
  const path = inside(join(repository.folder, "refs"), revision);
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomUUID()}.tmp`;
  await writeFile(temporary, commit);
  await rename(temporary, path);
}

/** Every branch, tag or pull request that was pulled, with its commit. */
export async function cachedRefs(repository: RepositoryFolder): Promise<Map<string, string>> {
  const refs = new Map<string, string>();
  for (const { path } of await filesBelow(join(repository.folder, "refs"))) {
    const commit = await cachedCommit(repository, path);
    if (commit !== undefined) refs.set(path, commit);
  }
  return refs;
}

/** The commits that have a snapshot. */
export async function cachedCommits({ folder }: RepositoryFolder): Promise<string[]> {
  const names = await readdir(join(folder, "snapshots")).catch(() => []);
  return names.filter(isCommit).sort();
}

export function snapshotFolder({ folder }: RepositoryFolder, commit: string): string {
  return inside(join(folder, "snapshots"), commit);
}

export function blobPath({ folder }: RepositoryFolder, blob: string): string {
  if (!isBlobName(blob)) throw new CheckpointError(folder, `${JSON.stringify(blob)} is no name of a blob`);
  return inside(join(folder, "blobs"), blob);
}

/** The path of a repository's file in a snapshot; never outside of it. */
export function snapshotPath(repository: RepositoryFolder, commit: string, path: string): string {
  if (judgePath(path) !== "plain")
    throw new CheckpointError(repository.repository, `${JSON.stringify(path)} is no name of a file`);
  return inside(snapshotFolder(repository, commit), path);
}

/** The files of a snapshot that can be read; links whose blob is gone are left out. */
export async function snapshotFiles(repository: RepositoryFolder, commit: string): Promise<SnapshotFile[]> {
  return await filesBelow(snapshotFolder(repository, commit));
}

/**
 * Puts a blob into a snapshot: as a relative link, where the file system has none as a hard link, else by moving
 * it there, which later pulls and other tools accept as well.
 */
export async function linkBlob(system: HubSystem, blob: string, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await system.symlink(relative(dirname(path), blob), temporary);
    await stat(temporary);
  } catch {
    await rm(temporary, { force: true });
    await link(blob, temporary).catch(() => rename(blob, temporary));
  }
  await rename(temporary, path);
}

/** Files below `folder`, links followed, sorted by path. */
export async function filesBelow(folder: string): Promise<SnapshotFile[]> {
  const files: SnapshotFile[] = [];
  const visit = async (prefix: string, depth: number): Promise<void> => {
    const entries = await readdir(join(folder, prefix), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
      if (entry.isDirectory()) {
        if (depth < MAX_DEPTH) await visit(path, depth + 1);
        continue;
      }
      const info = await stat(join(folder, path)).catch(() => undefined);
      if (info?.isFile() && !TEMPORARY.test(path)) files.push({ path, bytes: info.size });
    }
  };
  await visit("", 0);
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function inside(folder: string, path: string): string {
  const whole = resolve(folder, path);
  if (!whole.startsWith(resolve(folder) + sep))
    throw new CheckpointError(folder, `${JSON.stringify(path)} leaves it`);
  return whole;
}
