import { onTestFinished } from "vitest";
import type { ByteSource, Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { openGguf } from "../../../src/checkpoint/gguf/open.ts";

/** Opens a model that is one file, and closes it when the test ends. */
export async function openSingle(source: ByteSource): Promise<Checkpoint> {
  const checkpoint = await openGguf(source, () => Promise.reject(new Error("no sibling expected")));
  onTestFinished(() => checkpoint.close());
  return checkpoint;
}
