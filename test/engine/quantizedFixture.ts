import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend } from "../../src/backends/backend.ts";
import { openCheckpoint } from "../../src/checkpoint/open.node.ts";
import { quantizeCheckpoint } from "../../src/engine/quantize/quantize.node.ts";
import { Runner, type RunnerOptions } from "../../src/engine/runner.ts";
import { loadWeights, tieMissingHead } from "../../src/engine/weights.ts";
import { decoderFor } from "../../src/models/registry.ts";

/** A model of test/fixtures/models, quantized to 4 bits and loaded into a backend. */
export async function loadQuantized(
  name: string,
  backend: Backend,
  options: Omit<RunnerOptions, "context">,
): Promise<Runner> {
  const source = await openCheckpoint(join(import.meta.dirname, "../fixtures/models", name));
  const parent = await mkdtemp(join(tmpdir(), "halftone-quantized-"));
  const output = join(parent, name);
  try {
    await quantizeCheckpoint(source, output, { scheme: "nuq-4", threads: 1 });
    const checkpoint = await openCheckpoint(output);
    const spec = tieMissingHead(decoderFor(name, checkpoint.config, checkpoint.tensors), checkpoint);
    const weights = await loadWeights(spec, checkpoint, backend, "f32");
    await checkpoint.close();
    return new Runner(spec, weights, backend, { context: spec.contextLength, ...options });
  } finally {
    await source.close();
    await rm(parent, { recursive: true });
  }
}
