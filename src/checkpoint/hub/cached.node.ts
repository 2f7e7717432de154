/**
 * A model among the files of a cached snapshot.
 *
 * @module
 */
import { readFile, stat } from "node:fs/promises";
import { CheckpointError } from "../../errors.ts";
import { type RepositoryFolder, snapshotFiles, snapshotPath } from "./cache.node.ts";
import { type Selection, selectFiles, shardsOf } from "./selection.ts";

/** An index of a 1000-shard model is a few megabytes. */
export const MAX_INDEX_BYTES = 64 * 1024 * 1024;

/** A selection whose files are all on disk. */
export interface CachedSelection {
  readonly selection: Selection;
  readonly shards: readonly string[];
  /** Every file of the snapshot. */
  readonly paths: readonly string[];
}

/** @throws HalftoneError that says what is missing or which choice there is. */
export async function cachedSelection(
  repository: RepositoryFolder,
  commit: string,
  quant?: string,
): Promise<CachedSelection> {
  const paths = (await snapshotFiles(repository, commit)).map((file) => file.path);
  const selection = selectFiles(repository.repository, paths, quant);
  const { index } = selection;
  const shards = index === undefined ? [] : await readShards(snapshotPath(repository, commit, index));
  const missing = shards.filter((shard) => !paths.includes(shard));
  if (missing.length > 0)
    throw new CheckpointError(
      repository.repository,
      `${missing.length} of ${shards.length} shards are missing`,
      {
        remedy: "pull it again, it continues",
      },
    );
  return { selection, shards, paths };
}

/** The shards that an index on disk names. */
export async function readShards(path: string): Promise<string[]> {
  const info = await stat(path);
  if (info.size > MAX_INDEX_BYTES)
    throw new CheckpointError(path, `an index of ${info.size} bytes is no index`);
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new CheckpointError(path, "it is no JSON", { cause });
  }
  return shardsOf(json, path);
}
