import { readFileSync } from "node:fs";
import { join } from "node:path";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { openFixture } from "../../models/fixture.ts";

/** Token sequences of the tiny models' vocabulary of 96. */
export const ids = Array.from({ length: 12 }, (_, s) =>
  Array.from({ length: 40 }, (_, i) => (7 * s + i * i + (i % 5) * s) % 96),
);

/** As many as tests need that quantize again and again to compare bytes. */
export const few = ids.slice(0, 4);

/** Quantizes a tiny model; returns the bytes of its weights. */
export async function quantizedBytes(model: string, folder: string, run: QuantizeRun): Promise<Buffer> {
  const checkpoint = await openFixture(model);
  await quantizeCheckpoint(checkpoint, folder, { embeddingScheme: "nuq-4", threads: 2, ...run });
  return readFileSync(join(folder, "model.safetensors"));
}
