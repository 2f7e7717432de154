/**
 * Models of the Hugging Face hub: found in the cache or fetched into it.
 *
 * @module
 */
import { stat } from "node:fs/promises";
import { CheckpointError, HalftoneError, UsageError } from "../../errors.ts";
import {
  blobPath,
  cachedCommit,
  linkBlob,
  type RepositoryFolder,
  repositoryFolder,
  snapshotFolder,
  snapshotPath,
  writeRef,
} from "./cache.node.ts";
import { cachedSelection, MAX_INDEX_BYTES, readShards } from "./cached.node.ts";
import { diskError } from "./disk.node.ts";
import { downloadBlob, hasSize, UNFINISHED } from "./download.node.ts";
import { subjectName } from "./failure.ts";
import { type HubClient, hubClient } from "./http.node.ts";
import type { Listing } from "./listing.ts";
import { formatModelId, type ModelId, parseModelId } from "./modelId.ts";
import { type ProgressMeter, progressMeter } from "./progress.ts";
import { completeFile, fetchListing, type RemoteFile, resolveUrl } from "./remote.node.ts";
import { type Selection, selectFiles } from "./selection.ts";
import { type HubOptions, type HubSettings, hubSettings } from "./settings.node.ts";

/** A model on disk, all its files there. */
export interface HubModel {
  /** As `formatModelId` writes it. */
  readonly id: string;
  readonly commit: string;
  readonly format: Selection["format"];
  /** The snapshot, a Hugging Face model folder. */
  readonly folder: string;
  /** The file to open instead of the folder: a GGUF (first part), an ONNX graph. */
  readonly file: string | undefined;
  /** Every file of the model, as paths inside the folder. */
  readonly files: readonly string[];
}

const DEFAULT_CONNECTIONS = 4;
const DEFAULT_PART_BYTES = 16 * 1024 * 1024;
const TOKENIZERS = new Set(["tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"]);

/**
 * The model named `OWNER/NAME[@REV][:QUANT]`: from the cache when all its files are there, without asking the hub
 * whether there is something newer (`pull` does); otherwise fetched.
 *
 * Without a QUANT, whatever form of the model lies in the cache is taken.
 *
 * @throws UsageError, UnsupportedError, CheckpointError, HalftoneError; the signal's reason when aborted.
 */
export async function resolveHubModel(id: string, options: HubOptions = {}): Promise<HubModel> {
  const parsed = parseModelId(id);
  const settings = await hubSettings(options);
  const cached = await findCached(parsed, settings);
  if ("model" in cached && (cached.hasTokenizer || settings.offline)) return cached.model;
  if (settings.offline) throw offlineError(parsed, settings, cached);
  return await pullParsed(parsed, settings, options);
}

/**
 * Brings the model named `OWNER/NAME[@REV][:QUANT]` into the cache, at the commit that the revision stands for now.
 * Files that are there already are not fetched again. With HF_HUB_OFFLINE=1 it only looks into the cache.
 *
 * @throws UsageError, UnsupportedError, CheckpointError, HalftoneError; the signal's reason when aborted.
 */
export async function pull(id: string, options: HubOptions = {}): Promise<HubModel> {
  const parsed = parseModelId(id);
  const settings = await hubSettings(options);
  if (!settings.offline) return await pullParsed(parsed, settings, options);
  const cached = await findCached(parsed, settings);
  if ("model" in cached) return cached.model;
  throw offlineError(parsed, settings, cached);
}

interface Work {
  readonly id: ModelId;
  readonly client: HubClient;
  readonly repository: RepositoryFolder;
  readonly listing: Listing;
  readonly options: HubOptions;
}

async function pullParsed(id: ModelId, settings: HubSettings, options: HubOptions): Promise<HubModel> {
  const client = hubClient(settings, options);
  const repository = repositoryFolder(settings.cacheFolder, id.repository);
  const listing = await fetchListing(client, id);
  const work: Work = { id, client, repository, listing, options };
  const paths = listing.files.map((file) => file.path);
  const selection = selectFiles(id.repository, paths, id.quant);
  try {
    const shards = selection.index === undefined ? [] : await fetchIndex(work, selection.index);
    const needed = [...selection.files, ...shards];
    await fetchFiles(work, await Promise.all(needed.map((path) => completeFile(client, id, listing, path))));
    await writeRef(repository, id.revision, listing.commit);
    return hubModel(id, repository, listing.commit, selection, shards);
  } catch (error) {
    throw diskError(error, formatModelId(id), repository.folder);
  }
}

async function fetchIndex(work: Work, path: string): Promise<string[]> {
  const { id, client, repository, listing } = work;
  const file = await completeFile(client, id, listing, path);
  const name = subjectName({ ...id, file: path });
  if (file.size > MAX_INDEX_BYTES)
    throw new CheckpointError(name, `an index of ${file.size} bytes is no index`);
  await fetchFile(work, file, { add() {}, skip() {} });
  const shards = await readShards(snapshotPath(repository, listing.commit, path));
  const missing = shards.find((shard) => !listing.files.some((listed) => listed.path === shard));
  if (missing !== undefined) throw new CheckpointError(name, `its shard ${missing} is not in the repository`);
  return shards;
}

/** Small files first, several at once: when the weights are there, everything is. Large ones in parts. */
async function fetchFiles(work: Work, files: readonly RemoteFile[]): Promise<void> {
  const { options } = work;
  await checkRoom(work, files);
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const meter = progressMeter(total, (progress) => options.onProgress?.(progress));
  const partBytes = options.partBytes ?? DEFAULT_PART_BYTES;
  const small = files.filter((file) => file.size <= partBytes);
  const fetchSmall = async () => {
    try {
      for (let file = small.shift(); file !== undefined; file = small.shift())
        await fetchFile(work, file, meter);
    } catch (error) {
      small.length = 0;
      throw error;
    }
  };
  const connections = options.connections ?? DEFAULT_CONNECTIONS;
  const results = await Promise.allSettled(Array.from({ length: connections }, fetchSmall));
  for (const result of results) if (result.status === "rejected") throw result.reason;
  for (const file of files) if (file.size > partBytes) await fetchFile(work, file, meter);
}

async function fetchFile(work: Work, file: RemoteFile, meter: ProgressMeter): Promise<void> {
  const { id, client, repository, listing, options } = work;
  const target = snapshotPath(repository, listing.commit, file.path);
  if (await hasSize(target, file.size)) return meter.skip(file.path, file.size);
  const path = blobPath(repository, file.blob);
  await downloadBlob(client, {
    subject: { ...id, file: file.path },
    url: resolveUrl(client, id, listing.commit, file.path),
    blob: file.blob,
    size: file.size,
    path,
    lockPath: `${repository.locks}/${file.blob}.halftone.lock`,
    connections: options.connections ?? DEFAULT_CONNECTIONS,
    partBytes: options.partBytes ?? DEFAULT_PART_BYTES,
    onBytes: (bytes, found) => (found ? meter.skip(file.path, bytes) : meter.add(file.path, bytes)),
  });
  await linkBlob(client.system, path, target);
}

/** Fails before the first byte when the files cannot fit. */
async function checkRoom(
  { id, client, repository, listing }: Work,
  files: readonly RemoteFile[],
): Promise<void> {
  let needed = 0;
  for (const file of files) {
    if (await hasSize(snapshotPath(repository, listing.commit, file.path), file.size)) continue;
    const path = blobPath(repository, file.blob);
    if (await hasSize(path, file.size)) continue;
    const begun = await stat(path + UNFINISHED).catch(() => undefined);
    // Unfinished files have holes: only their blocks (512 bytes each) are taken.
    needed += Math.max(0, file.size - (begun?.blocks ?? 0) * 512);
  }
  const free = await client.system.freeBytes(repository.folder);
  if (free !== undefined && free < needed)
    throw new HalftoneError(
      `${formatModelId(id)}: the disk has ${free} bytes free in ${repository.folder} but ${needed} are needed; free some space or set HF_HUB_CACHE to a folder on another disk`,
    );
}

async function findCached(
  id: ModelId,
  settings: HubSettings,
): Promise<{ model: HubModel; hasTokenizer: boolean } | { problem: string }> {
  const repository = repositoryFolder(settings.cacheFolder, id.repository);
  const commit = await cachedCommit(repository, id.revision);
  if (commit === undefined) return { problem: "it is not there" };
  try {
    const { selection, shards, paths } = await cachedSelection(repository, commit, id.quant);
    const hasTokenizer = selection.format === "gguf" || paths.some((path) => TOKENIZERS.has(path));
    return { model: hubModel(id, repository, commit, selection, shards), hasTokenizer };
  } catch (error) {
    if (error instanceof HalftoneError) return { problem: error.message };
    throw error;
  }
}

function offlineError(id: ModelId, settings: HubSettings, cached: object): UsageError {
  const problem = "problem" in cached ? cached.problem : "it is incomplete";
  return new UsageError(
    `${formatModelId(id)}: not usable from the cache ${settings.cacheFolder} (${problem}) and HF_HUB_OFFLINE forbids to fetch it; unset HF_HUB_OFFLINE`,
  );
}

function hubModel(
  id: ModelId,
  repository: RepositoryFolder,
  commit: string,
  { format, files, entry }: Selection,
  shards: readonly string[],
): HubModel {
  return {
    id: formatModelId(id),
    commit,
    format,
    folder: snapshotFolder(repository, commit),
    file: entry === undefined ? undefined : snapshotPath(repository, commit, entry),
    files: [...files, ...shards],
  };
}
