import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";

/** Token sequences of the tiny models' vocabulary of 96. */
export const ids = Array.from({ length: 12 }, (_, s) =>
  Array.from({ length: 40 }, (_, i) => (7 * s + i * i + (i % 5) * s) % 96),
);

/** Quantizes a tiny model; returns the bytes of its weights. */
export async function quantizedBytes(model: string, folder: string, run: QuantizeRun): Promise<Buffer> {
  const checkpoint = await openCheckpoint(`test/fixtures/models/${model}`);
  try {
    await quantizeCheckpoint(checkpoint, folder, { embeddingScheme: "nuq-4", threads: 2, ...run });
  } finally {
    await checkpoint.close();
  }
  return readFileSync(join(folder, "model.safetensors"));
}
