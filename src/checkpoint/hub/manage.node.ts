/**
 * The cache as the user sees it: what is there, what it weighs, and how to be rid of it.
 *
 * @module
 */
import { lstat, readFile, readlink, realpath, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { HalftoneError, UsageError } from "../../errors.ts";
import {
  cachedCommit,
  cachedCommits,
  cachedRefs,
  cachedRepositories,
  filesBelow,
  type RepositoryFolder,
  repositoryFolder,
  type SnapshotFile,
  snapshotFiles,
  snapshotFolder,
} from "./cache.node.ts";
import { cachedSelection } from "./cached.node.ts";
import { diskError } from "./disk.node.ts";
import { NOTE, UNFINISHED } from "./download.node.ts";
import { formatModelId, parseModelId } from "./modelId.ts";
import { readNote, receivedBytes } from "./parts.ts";
import { type Selection, selectFiles } from "./selection.ts";
import { type HubOptions, hubSettings } from "./settings.node.ts";

/** One snapshot in the cache, whichever tool put it there. */
export interface CachedModel {
  readonly repository: string;
  readonly commit: string;
  /** Branches and tags that stand for this commit; empty when none does any more. */
  readonly revisions: readonly string[];
  readonly folder: string;
  /** What it would be opened as; undefined when the weights are missing or incomplete. */
  readonly format: Selection["format"] | undefined;
  /** Bytes of its files; other snapshots may share them. */
  readonly bytes: number;
  readonly modified: Date;
  readonly files: readonly SnapshotFile[];
}

/** A repository in the cache. */
export interface CachedRepository {
  readonly repository: string;
  readonly folder: string;
  /** Bytes on disk, each blob counted once. */
  readonly bytes: number;
  readonly snapshots: readonly CachedModel[];
  /** Downloads that were cut and will be continued by the next pull. */
  readonly unfinished: readonly {
    readonly blob: string;
    readonly receivedBytes: number;
    readonly totalBytes: number;
  }[];
}

/** What `removeCached` did. */
export interface Removal {
  /** Paths that are gone: the repository, snapshots, or single files. */
  readonly removed: readonly string[];
  /** Bytes given back to the disk. */
  readonly freedBytes: number;
}

/** All models in the cache, by name. */
export async function listCached(options: HubOptions = {}): Promise<CachedModel[]> {
  const { cacheFolder } = await hubSettings(options);
  const models: CachedModel[] = [];
  for (const repository of await cachedRepositories(cacheFolder))
    models.push(...(await snapshotsOf(repository)));
  return models;
}

/**
 * What the cache holds of `OWNER/NAME[@REV]`; all snapshots when REV is not given.
 *
 * @throws UsageError when there is nothing.
 */
export async function showCached(id: string, options: HubOptions = {}): Promise<CachedRepository> {
  const { repository, commit } = await locate(id, options);
  const snapshots = (await snapshotsOf(repository)).filter(
    (model) => commit === undefined || model.commit === commit,
  );
  const blobs = await filesBelow(join(repository.folder, "blobs"));
  const unfinished = [];
  for (const { path, bytes } of blobs) {
    if (!path.endsWith(UNFINISHED)) continue;
    const blob = path.slice(0, -UNFINISHED.length);
    const note = await readFile(join(repository.folder, "blobs", blob + NOTE), "utf8").catch(() => "");
    unfinished.push({
      blob,
      receivedBytes: receivedBytes(readNote(note, bytes)?.parts ?? []),
      totalBytes: bytes,
    });
  }
  const bytes = await diskBytes(repository.folder);
  return { repository: repository.repository, folder: repository.folder, bytes, snapshots, unfinished };
}

/**
 * Removes `OWNER/NAME` with everything, `OWNER/NAME@REV` one snapshot, or with `:QUANT` the files of that
 * quantization only. Blobs that another snapshot needs stay.
 *
 * @throws UsageError when the cache does not hold it.
 */
export async function removeCached(id: string, options: HubOptions = {}): Promise<Removal> {
  const { repository, commit, quant } = await locate(id, options);
  try {
    const before = await diskBytes(repository.folder);
    const removed: string[] = [];
    if (commit === undefined && quant === undefined) {
      await rm(repository.folder, { recursive: true, force: true });
      await rm(repository.locks, { recursive: true, force: true });
      removed.push(repository.folder);
    } else {
      for (const each of commit === undefined ? await cachedCommits(repository) : [commit])
        removed.push(...(await removeFiles(repository, each, quant)));
      if (removed.length === 0)
        throw new UsageError(`${id}: the cache holds no such file; see what "list" shows`);
    }
    return { removed, freedBytes: before - (await diskBytes(repository.folder)) };
  } catch (error) {
    throw diskError(error, id, repository.folder);
  }
}

async function locate(id: string, options: HubOptions) {
  const parsed = parseModelId(id);
  const { cacheFolder } = await hubSettings(options);
  const repository = repositoryFolder(cacheFolder, parsed.repository);
  const named = id.includes("@");
  const commit = named ? await cachedCommit(repository, parsed.revision) : undefined;
  const there = await stat(
    commit === undefined ? repository.folder : snapshotFolder(repository, commit),
  ).catch(() => undefined);
  if (there === undefined || (named && commit === undefined))
    throw new UsageError(
      `${formatModelId(parsed)} is not in the cache ${cacheFolder}; see what "list" shows`,
    );
  return { repository, commit, quant: parsed.quant };
}

async function snapshotsOf(repository: RepositoryFolder): Promise<CachedModel[]> {
  const refs = await cachedRefs(repository);
  const models: CachedModel[] = [];
  for (const commit of await cachedCommits(repository)) {
    const folder = snapshotFolder(repository, commit);
    const files = await snapshotFiles(repository, commit);
    models.push({
      repository: repository.repository,
      commit,
      revisions: [...refs].flatMap(([revision, target]) => (target === commit ? [revision] : [])),
      folder,
      format: await formatOf(repository, commit),
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      modified: (await stat(folder)).mtime,
      files,
    });
  }
  return models;
}

async function formatOf(
  repository: RepositoryFolder,
  commit: string,
): Promise<Selection["format"] | undefined> {
  try {
    return (await cachedSelection(repository, commit)).selection.format;
  } catch (error) {
    // Several GGUF files and no preferred one among them.
    if (error instanceof UsageError) return "gguf";
    if (error instanceof HalftoneError) return undefined;
    throw error;
  }
}

/** Removes a snapshot or the files of one quantization in it, and the blobs that nothing needs any more. */
async function removeFiles(
  repository: RepositoryFolder,
  commit: string,
  quant: string | undefined,
): Promise<string[]> {
  const folder = snapshotFolder(repository, commit);
  const paths = (await snapshotFiles(repository, commit)).map((file) => file.path);
  const doomed = quant === undefined ? paths : weightsOf(repository.repository, paths, quant);
  const blobs = new Set<string>();
  for (const path of doomed) {
    const blob = await blobOf(repository, join(folder, path));
    if (blob !== undefined) blobs.add(blob);
    await rm(join(folder, path), { force: true });
    await removeEmptyFolders(dirname(join(folder, path)), folder);
  }
  const removed = doomed.map((path) => join(folder, path));
  const left = await filesBelow(folder);
  if (quant === undefined || left.length === 0) {
    await rm(folder, { recursive: true, force: true });
    removed.splice(0, removed.length, folder);
    for (const [revision, target] of await cachedRefs(repository))
      if (target === commit) await rm(join(repository.folder, "refs", revision), { force: true });
  }
  for (const other of await cachedCommits(repository))
    for (const { path } of await snapshotFiles(repository, other)) {
      const blob = await blobOf(repository, join(snapshotFolder(repository, other), path));
      if (blob !== undefined) blobs.delete(blob);
    }
  for (const blob of blobs) await rm(blob, { force: true });
  return doomed.length === 0 && quant !== undefined ? [] : removed;
}

/** Files that belong to one quantization alone: not config and tokenizer, which others share. */
function weightsOf(repository: string, paths: readonly string[], quant: string): string[] {
  try {
    return selectFiles(repository, paths, quant).files.filter((path) =>
      /\.(?:gguf|onnx|onnx_data\w*|data)$/.test(path),
    );
  } catch (error) {
    if (error instanceof HalftoneError) return [];
    throw error;
  }
}

/** The blob that a file of a snapshot links to; undefined when it is a file of its own or links elsewhere. */
async function blobOf(repository: RepositoryFolder, path: string): Promise<string | undefined> {
  const info = await lstat(path).catch(() => undefined);
  const blobs = await realpath(join(repository.folder, "blobs")).catch(() => undefined);
  if (info === undefined || blobs === undefined) return undefined;
  if (!info.isSymbolicLink())
    return info.nlink > 1 ? await blobWithInode(blobs, info.ino, info.dev) : undefined;
  // One step only: a blob may itself be a link into a store that several caches share.
  const target = join(await realpath(dirname(path)), await readlink(path));
  const folder = await realpath(dirname(target)).catch(() => undefined);
  return folder === blobs ? join(blobs, basename(target)) : undefined;
}

async function blobWithInode(blobs: string, inode: number, device: number): Promise<string | undefined> {
  for (const { path } of await filesBelow(blobs)) {
    const info = await lstat(join(blobs, path)).catch(() => undefined);
    if (info?.ino === inode && info.dev === device) return join(blobs, path);
  }
  return undefined;
}

async function removeEmptyFolders(folder: string, top: string): Promise<void> {
  for (let each = folder; each !== top; each = dirname(each))
    try {
      await rmdir(each);
    } catch {
      return;
    }
}

/** Bytes of the files below a folder, links not followed, hard links counted once; holes do not count. */
async function diskBytes(folder: string): Promise<number> {
  const seen = new Map<string, number>();
  for (const { path } of await filesBelow(folder)) {
    const info = await lstat(join(folder, path)).catch(() => undefined);
    if (info?.isFile())
      seen.set(`${info.dev}:${info.ino}`, path.endsWith(UNFINISHED) ? info.blocks * 512 : info.size);
  }
  return [...seen.values()].reduce((sum, bytes) => sum + bytes, 0);
}
