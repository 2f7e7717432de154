import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { decoderGradient } from "../../../src/engine/gradient/decoder.ts";
import { Model } from "../../../src/engine/model.ts";
import { ReferenceBackend } from "../../../src/ops/reference.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";
import { models, openFixture } from "../../models/fixture.ts";

/** Largest difference from central differences, relative to the derivative. */
const TOLERANCE = 1e-3;
const STEP = 2e-3;

const ids = Array.from({ length: 11 }, (_, i) => (i * i + 3) % 90);

/** A smooth function of all logits: their product with fixed numbers. */
function probe(size: number): Float32Array {
  return fillGaussian(new Float32Array(ids.length * size), 7);
}

describe.each(readdirSync(models))("gradients agree with central differences, %s", (name) => {
  it("of every kind of weight", async () => {
    const checkpoint = await openFixture(name);
    const { spec } = await Model.load(checkpoint, new ReferenceBackend());
    const gradients = await gradientsOf(checkpoint, spec.vocabularySize);
    const last = `.${spec.layers.length - 1}.`;
    const wanted = [...gradients.keys()].filter((key) => !/\.\d+\./.test(key) || key.includes(last));
    const loss = async (tensor: string, values: Float32Array) => {
      const model = await Model.load(replace(checkpoint, tensor, values), new ReferenceBackend());
      const positions = ids.map((_, i) => i);
      const logits = await model.runner.step({ ids, positions, length: ids.length }, "all");
      const weights = probe(spec.vocabularySize);
      return logits.reduce((sum, value, i) => sum + value * weights[i], 0);
    };
    for (const key of wanted) {
      const gradient = gradients.get(key)!;
      const tensor = checkpoint.tensors.get(key)!;
      const values = await tensor.readRows(0, tensor.shape[0]);
      // Along the gradient and off it: float32 rounds what a random direction alone would show.
      const size = norm(values) + 1e-3 * Math.sqrt(values.length);
      // An embedding's gradient lies in the few rows that were looked up.
      const share = Math.sqrt(gradient.filter((value) => value !== 0).length / gradient.length);
      const random = fillGaussian(new Float32Array(values.length), 5);
      const [along, across] = [(share * size) / norm(gradient), size / norm(random)];
      const direction = gradient.map((value, i) => along * value + across * random[i]);
      const at = (step: number) =>
        loss(
          key,
          values.map((value, i) => value + step * direction[i]),
        );
      const difference = async (step: number) => ((await at(step)) - (await at(-step))) / (2 * step);
      // Richardson: without the error of second order.
      const expected = (4 * (await difference(STEP / 2)) - (await difference(STEP))) / 3;
      const found = gradient.reduce((sum, value, i) => sum + value * direction[i], 0);
      expect(Math.abs(found / expected - 1), key).toBeLessThan(TOLERANCE);
    }
  });
});

/** Of the probe, by tensor. */
async function gradientsOf(checkpoint: Checkpoint, vocabulary: number): Promise<Map<string, Float32Array>> {
  const { spec } = await Model.load(checkpoint, new ReferenceBackend());
  const backend = await openWasm();
  const before = backend.bytesAllocated;
  const gradients = new Map<string, Float32Array>();
  const gradientOf = (tensor: string) => {
    const { shape } = checkpoint.tensors.get(tensor)!;
    const found = gradients.get(tensor) ?? new Float32Array(shape.reduce((a, b) => a * b));
    gradients.set(tensor, found);
    return found;
  };
  const weights = probe(vocabulary);
  await decoderGradient({
    ...{ spec, checkpoint, backend, sequences: [ids] },
    loss: (logits, _, first) => weights.slice(first * vocabulary, first * vocabulary + logits.length),
    observer: {
      linear({ weight, bias, firstRow = 0, rows, columns }, _, input, dOut) {
        const target = gradientOf(weight);
        for (let t = 0; t < input.length / columns; t++) {
          for (let i = 0; i < rows; i++) {
            const pull = dOut[t * rows + i];
            if (bias) gradientOf(bias)[firstRow + i] += pull;
            for (let j = 0; j < columns; j++)
              target[(firstRow + i) * columns + j] += pull * input[t * columns + j];
          }
        }
      },
      norm({ weight }, _, dWeight) {
        const target = gradientOf(weight);
        for (let i = 0; i < target.length; i++) target[i] += dWeight[i];
      },
      embed(_, dRows) {
        const target = gradientOf(spec.embedding.weight);
        const { columns } = spec.embedding;
        for (let i = 0; i < dRows.length; i++)
          target[ids[Math.floor(i / columns)] * columns + (i % columns)] += dRows[i];
      },
    },
  });
  expect(backend.bytesAllocated).toBe(before);
  backend.dispose();
  return gradients;
}

function replace(checkpoint: Checkpoint, name: string, values: Float32Array): Checkpoint {
  const tensor = checkpoint.tensors.get(name)!;
  const size = values.length / tensor.shape[0];
  const changed = {
    ...tensor,
    readRows: async (from: number, to: number, target = new Float32Array((to - from) * size)) => {
      target.set(values.subarray(from * size, to * size));
      return target;
    },
  };
  return { ...checkpoint, tensors: new Map(checkpoint.tensors).set(name, changed) };
}

function norm(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}
