import { CheckpointError } from "../../errors.ts";
import type { ByteSource, Tensor } from "../checkpoint.ts";
import { denseTensor } from "../denseTensor.ts";
import type { FileSet } from "../huggingface/fileSet.ts";
import { isJsonObject, readJsonObject } from "../json.ts";
import { readHeader } from "./header.ts";

export const SINGLE_FILE = "model.safetensors";
export const INDEX_FILE = "model.safetensors.index.json";

/** Tensors of one or more safetensors files; nothing but headers is read until a tensor is. */
export interface SafetensorsFile {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly metadata: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Opens one file. The source is closed with the result, or at once when the file is damaged. */
export async function openSafetensors(source: ByteSource): Promise<SafetensorsFile> {
  try {
    const { entries, metadata } = await readHeader(source);
    const tensors = new Map(
      entries.map(({ name, dtype, shape, offset }) => [
        name,
        denseTensor(name, dtype, shape, source, offset),
      ]),
    );
    return { tensors, metadata, close: () => source.close() };
  } catch (error) {
    await source.close();
    throw error;
  }
}

/**
 * Opens `model.safetensors`, or the shards that `model.safetensors.index.json` lists.
 * Returns undefined when the set has neither.
 */
export async function openModelSafetensors(files: FileSet): Promise<SafetensorsFile | undefined> {
  const single = await files.open(SINGLE_FILE);
  if (single !== undefined) return openSafetensors(single);
  const index = await files.open(INDEX_FILE);
  if (index === undefined) return undefined;
  const map = await readWeightMap(index);
  const shards: SafetensorsFile[] = [];
  const close = async () => {
    await Promise.all(shards.map((shard) => shard.close()));
  };
  try {
    const byShard = new Map<string, SafetensorsFile>();
    for (const name of [...new Set(map.values())].sort()) {
      const source = await files.open(name);
      if (source === undefined) {
        throw new CheckpointError(index.name, `lists ${name}, which is not beside it`, {
          remedy: "fetch the missing file",
        });
      }
      const shard = await openSafetensors(source);
      shards.push(shard);
      byShard.set(name, shard);
    }
    const tensors = new Map<string, Tensor>();
    for (const [name, file] of map) {
      const tensor = byShard.get(file)?.tensors.get(name);
      if (tensor === undefined)
        throw new CheckpointError(index.name, `says ${name} is in ${file}, it is not`);
      tensors.set(name, tensor);
    }
    const metadata = Object.assign({}, ...shards.map((shard) => shard.metadata)) as Record<string, string>;
    return { tensors, metadata, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function readWeightMap(index: ByteSource): Promise<Map<string, string>> {
  try {
    const { weight_map: weights } = await readJsonObject(index);
    if (!isJsonObject(weights)) throw new CheckpointError(index.name, "has no weight_map");
    for (const [name, file] of Object.entries(weights)) {
      if (typeof file !== "string" || !/^[\w.-]+\.safetensors$/.test(file)) {
        const shown = JSON.stringify(file)?.slice(0, 100);
        throw new CheckpointError(
          index.name,
          `puts ${name.slice(0, 200)} in ${shown}, no safetensors file beside it`,
        );
      }
    }
    return new Map(Object.entries(weights as Record<string, string>));
  } finally {
    await index.close();
  }
}
