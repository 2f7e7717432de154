import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { balancedCheckpoint } from "../../../src/engine/balance/balanced.ts";
import { scalableInputs } from "../../../src/engine/balance/inputs.ts";
import { Model } from "../../../src/engine/model.ts";
import { floatDecoder } from "../../../src/engine/quantize/plan.ts";
import { ReferenceBackend } from "../../../src/ops/reference.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";

/** A model that computes the same with channels of very different sizes. */
export function scattered(checkpoint: Checkpoint): Checkpoint {
  const spec = floatDecoder(checkpoint);
  const inputs = scalableInputs(spec);
  const scales = inputs.map(({ sourceSize }, seed) =>
    fillGaussian(new Float32Array(sourceSize), seed).map((value) => Math.exp(value)),
  );
  const balance = { tokens: 0, exponent: 0, digest: "" };
  return { ...balancedCheckpoint(checkpoint, spec, inputs, scales, balance), balance: undefined };
}

/** Logits of a few tokens, [tokens, vocabulary]. */
export async function floatLogits(checkpoint: Checkpoint): Promise<Float32Array> {
  const ids = Array.from({ length: 24 }, (_, i) => (i * i + 3) % 90);
  const model = await Model.load(checkpoint, new ReferenceBackend(), { chunk: ids.length });
  try {
    return await model.runner.step({ ids, positions: ids.map((_, i) => i), length: ids.length }, "all");
  } finally {
    model.dispose();
  }
}
