import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";

/** The folder of the tiny models, one for each architecture and odd case. */
export const models = join(import.meta.dirname, "../fixtures/models");

/** A tiny model by the name of its folder, closed when the test ends. */
export function openFixture(name: string): Promise<Checkpoint> {
  return openModel(join(models, name));
}

/** Any model, closed when the test ends. */
export async function openModel(path: string): Promise<Checkpoint> {
  const checkpoint = await openCheckpoint(path);
  onTestFinished(() => checkpoint.close());
  return checkpoint;
}
