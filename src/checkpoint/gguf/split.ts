import { CheckpointError } from "../../errors.ts";
import type { ByteSource } from "../checkpoint.ts";
import { quote, readHeader, type StoredTensor } from "./header.ts";
import { Settings } from "./settings.ts";

/** The tensors of all parts of a model, and the sources opened for the parts after the first. */
export interface Parts {
  readonly tensors: readonly StoredTensor[];
  close(): Promise<void>;
}

/**
 * Opens the parts of a split model (`NAME-00001-of-00003.gguf`, metadata in the first part); of a model
 * in one file, nothing more.
 */
export async function openParts(
  source: ByteSource,
  settings: Settings,
  firstTensors: readonly StoredTensor[],
  openSibling: (name: string) => Promise<ByteSource>,
): Promise<Parts> {
  const count = settings.integer("split.count") ?? 1;
  const opened: ByteSource[] = [];
  const close = async () => {
    for (const part of opened) await part.close();
  };
  if (count <= 1) return { tensors: firstTensors, close };

  const names = partNames(source, settings, count);
  const tensors = [...firstTensors];
  const seen = new Set(firstTensors.map((tensor) => tensor.name));
  try {
    for (let part = 1; part < count; part++) {
      const sibling = await openSibling(names(part));
      opened.push(sibling);
      const header = await readHeader(sibling);
      const its = new Settings(sibling.name, header);
      if (its.integer("split.no") !== part || its.integer("split.count") !== count) {
        throw new CheckpointError(sibling.name, `is not part ${part + 1} of ${count}`);
      }
      for (const tensor of header.tensors) {
        if (seen.has(tensor.name)) {
          throw new CheckpointError(sibling.name, `tensor ${quote(tensor.name)} is in an earlier part too`, {
            offset: tensor.offset,
          });
        }
        seen.add(tensor.name);
        tensors.push(tensor);
      }
    }
    const total = settings.integer("split.tensors.count");
    if (total !== undefined && total !== tensors.length) {
      throw new CheckpointError(source.name, `the parts hold ${tensors.length} tensors of ${total}`);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { tensors, close };
}

/** The file name of part `index`, from the name of the first. */
function partNames(source: ByteSource, settings: Settings, count: number): (index: number) => string {
  const fileName = source.name.split(/[/\\]/).at(-1) ?? "";
  const match = /^(.*)-(\d{5})-of-(\d{5})(\.gguf)$/.exec(fileName);
  if (match === null || Number(match[3]) !== count) {
    throw new CheckpointError(source.name, `the first of ${count} parts has no name that tells the others'`, {
      remedy: "name it NAME-00001-of-00003.gguf, with its number of parts",
    });
  }
  const [, base, , total, extension] = match;
  const name = (index: number) => `${base}-${String(index + 1).padStart(5, "0")}-of-${total}${extension}`;
  if (settings.integer("split.no") !== 0) {
    throw new CheckpointError(source.name, "is not the first part of the model", {
      remedy: `open ${name(0)}`,
    });
  }
  return name;
}
