/**
 * How a model's tensors are cut into files, and what those files weigh.
 *
 * @module
 */
import { buildHeader, entryBytes, type TensorEntry } from "./header.ts";

/** Shards as large as transformers writes them. */
export const DEFAULT_SHARD_BYTES = 4_000_000_000;

/** Without it transformers does not read a file. */
export const METADATA: Readonly<Record<string, string>> = { format: "pt" };

/** Tensors in their order, as many to a shard as fit; a larger tensor has a shard of its own. */
export function splitShards(tensors: readonly TensorEntry[], limit: number): TensorEntry[][] {
  const shards: TensorEntry[][] = [];
  let room = 0;
  for (const entry of tensors) {
    const size = entryBytes(entry);
    if (shards.length === 0 || size > room) {
      shards.push([]);
      room = limit;
    }
    shards[shards.length - 1].push(entry);
    room -= size;
  }
  return shards;
}

/** Bytes of a model's safetensors files, headers included. */
export function filesByteLength(tensors: readonly TensorEntry[], limit = DEFAULT_SHARD_BYTES): number {
  return splitShards(tensors, limit).reduce((sum, shard) => sum + buildHeader(shard, METADATA).size, 0);
}
