import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { createJobRunner } from "../../../src/engine/quantize/job.ts";
import { floatDecoder, planTensors } from "../../../src/engine/quantize/plan.ts";
import { Parameters } from "../../../src/engine/tuning/parameters.ts";
import type { QuantizedWeights } from "../../../src/engine/tuning/student.ts";

/** A tiny model, all its weights rounded, and the parameters that are tuned. */
export async function rounded(checkpoint: Checkpoint, scheme: string) {
  const { tensors } = checkpoint;
  const spec = floatDecoder(checkpoint);
  const plan = planTensors(checkpoint, { scheme, embeddingScheme: scheme });
  const run = createJobRunner();
  const values = new Map<string, Float32Array>();
  for (const [name, stored] of plan) {
    const [rows, columns] = stored.shape;
    const weights = await tensors.get(name)!.readRows(0, rows);
    const codes = run({ kind: "round", weights, rows, columns, stored });
    values.set(name, run({ kind: "decode", ...codes, columns, stored }));
  }
  const names = [...plan.keys()];
  const quantized: QuantizedWeights = { names, decode: async (name) => values.get(name)! };
  return { spec, quantized, parameters: await Parameters.create(spec, checkpoint, names) };
}

/** Token sequences of the tiny models' vocabulary of 96. */
export function sequences(count: number, length: number): number[][] {
  return Array.from({ length: count }, (_, s) =>
    Array.from({ length }, (_, i) => (7 * s + i * i + (i % 5) * s) % 90),
  );
}
