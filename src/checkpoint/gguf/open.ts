import { CheckpointError } from "../../errors.ts";
import type { ByteSource, Checkpoint, Tensor } from "../checkpoint.ts";
import { arrange, isKnownArchitecture } from "./architecture.ts";
import { headCounts, toConfig, toGenerationConfig } from "./config.ts";
import { quote, readHeader, type StoredTensor } from "./header.ts";
import { ROPE_FACTOR_TENSORS, type RopeFactors } from "./ropeScaling.ts";
import { Settings } from "./settings.ts";
import { openParts } from "./split.ts";
import { ggufTensor } from "./tensor.ts";
import { readTokenizer } from "./tokenizer/tokenizer.ts";

/** More values than any head has pairs. */
const MAX_FACTORS = 4096;

/**
 * Opens a GGUF model. `openSibling` opens the other parts of a split model by their plain file name.
 * Closing the checkpoint closes `source` and the parts; when opening fails, `source` stays open.
 */
export async function openGguf(
  source: ByteSource,
  openSibling: (name: string) => Promise<ByteSource>,
): Promise<Checkpoint> {
  const first = await readHeader(source);
  const settings = new Settings(source.name, first);
  const parts = await openParts(source, settings, first.tensors, openSibling);
  try {
    const architecture = settings.required(settings.string("general.architecture"), "general.architecture");
    const stored = new Map(parts.tensors.map((tensor) => [tensor.name, tensor]));
    const tensors = arrangeTensors(settings, architecture, parts.tensors);
    const shapes = new Map(parts.tensors.map((tensor) => [tensor.name, tensor.shape]));
    const factors = isKnownArchitecture(architecture) ? await readRopeFactors(settings, stored) : {};
    return {
      source: source.name,
      format: "gguf",
      config: toConfig(settings, architecture, { shapes, factors }),
      generationConfig: toGenerationConfig(settings),
      tensors,
      tokenizer: readTokenizer(settings),
      async close() {
        await parts.close();
        await source.close();
      },
    };
  } catch (error) {
    await parts.close();
    throw error;
  }
}

function arrangeTensors(
  settings: Settings,
  architecture: string,
  stored: readonly StoredTensor[],
): ReadonlyMap<string, Tensor> {
  const heads = isKnownArchitecture(architecture)
    ? headCounts(settings, architecture)
    : { query: 1, keyValue: 1 };
  const tensors = new Map<string, Tensor>();
  for (const item of stored) {
    const arrangement = arrange(architecture, item.name, heads);
    const fail = (problem: string) =>
      new CheckpointError(item.source.name, `tensor ${quote(item.name)} ${problem}`, { offset: item.offset });
    const { interleavedHeads } = arrangement;
    if (interleavedHeads !== undefined && (item.shape[0] ?? 0) % (2 * interleavedHeads) !== 0) {
      throw fail(`of ${item.shape[0]} rows does not divide into ${interleavedHeads} heads`);
    }
    if (tensors.has(arrangement.name)) throw fail("appears twice");
    tensors.set(arrangement.name, ggufTensor(item, arrangement));
  }
  return tensors;
}

async function readRopeFactors(
  settings: Settings,
  stored: ReadonlyMap<string, StoredTensor>,
): Promise<RopeFactors> {
  const read = async (name: string) => {
    const tensor = stored.get(name);
    if (tensor === undefined) return undefined;
    const [length] = tensor.shape;
    if (tensor.shape.length !== 1 || length > MAX_FACTORS) {
      throw new CheckpointError(settings.file, `tensor ${name} of shape [${tensor.shape.join(", ")}]`, {
        offset: tensor.offset,
      });
    }
    const values = [...(await ggufTensor(tensor, { name }).readRows(0, length))];
    if (values.some((value) => !(value > 0 && Number.isFinite(value)))) {
      throw new CheckpointError(settings.file, `tensor ${name} has factors that are not positive`, {
        offset: tensor.offset,
      });
    }
    return values;
  };
  return {
    all: await read(ROPE_FACTOR_TENSORS.all),
    long: await read(ROPE_FACTOR_TENSORS.long),
    short: await read(ROPE_FACTOR_TENSORS.short),
  };
}
