import { buildHeader, type TensorEntry } from "../../../src/checkpoint/safetensors/header.ts";
import { createSafetensors } from "../../../src/checkpoint/safetensors/writer.node.ts";

/** Writes a whole file, asking for the bytes of each tensor in file order. */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorEntry[],
  bytesOf: (entry: TensorEntry) => Uint8Array,
  metadata?: Readonly<Record<string, string>>,
): Promise<void> {
  const writer = await createSafetensors(path, tensors, metadata);
  for (const entry of buildHeader(tensors).entries) await writer.write(entry.name, bytesOf(entry));
  await writer.finish();
}
