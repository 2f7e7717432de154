import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decoderGradient, lastStreams } from "../../../src/engine/gradient/decoder.ts";
import { LogitsOf } from "../../../src/engine/gradient/logits.ts";
import { divergenceLoss, meanDivergence } from "../../../src/engine/tuning/divergence.ts";
import { ParameterGradient, studentCheckpoint } from "../../../src/engine/tuning/student.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";
import { models, openFixture } from "../../models/fixture.ts";
import { sequences as makeSequences, rounded } from "./rounded.ts";

/** Largest difference from central differences, relative to the derivative. */
const TOLERANCE = 5e-3;
const STEP = 2e-2;

const sequences = [...makeSequences(1, 23), ...makeSequences(2, 9).slice(1)];

describe.each(readdirSync(models))(
  "gradients of scales and norms agree with central differences, %s",
  (name) => {
    it("by kind of tensor", async () => {
      const original = await openFixture(name);
      const { spec, quantized, parameters } = await rounded(original, "nuq-3");
      const { values } = parameters;
      const start = fillGaussian(new Float64Array(values.length), 3).map((value) => 0.05 * value);
      values.set(start);
      const student = studentCheckpoint(original, parameters, quantized);
      const backend = await openWasm();
      const before = backend.bytesAllocated;
      const models = { spec, backend, sequences };
      const streams = await lastStreams({ ...models, checkpoint: original });
      const teacher = await LogitsOf.load(spec, original, backend, 10);
      const observer = new ParameterGradient(original, parameters);
      const tokens = sequences.flat().length;
      const loss = divergenceLoss(spec, teacher, streams, 1 / tokens);
      await decoderGradient({ ...models, checkpoint: student, loss, observer });
      const divergenceAt = (direction: Float64Array, step: number) => {
        for (let i = 0; i < values.length; i++) values[i] = start[i] + step * direction[i];
        return meanDivergence({ ...models, teacher, student, streams });
      };
      const last = `.${spec.layers.length - 1}.`;
      for (const [tensor, { first, count }] of parameters.blocks) {
        if (/\.\d+\./.test(tensor) && !tensor.includes(last)) continue;
        // Along the gradient and off it: float32 rounds what a random direction alone would show.
        const gradient = observer.sum.subarray(first, first + count);
        const along = Math.sqrt(count) / Math.hypot(...gradient);
        const random = fillGaussian(new Float64Array(count), 5);
        const direction = new Float64Array(values.length);
        for (let i = 0; i < count; i++) direction[first + i] = along * gradient[i] + 0.1 * random[i];
        const difference = async (step: number) =>
          ((await divergenceAt(direction, step)) - (await divergenceAt(direction, -step))) / (2 * step);
        // Richardson: without the error of second order.
        const expected = (4 * (await difference(STEP / 2)) - (await difference(STEP))) / 3;
        const found = observer.sum.reduce((sum, value, i) => sum + value * direction[i], 0);
        expect(Math.abs(found / expected - 1), tensor).toBeLessThan(TOLERANCE);
      }
      teacher.free();
      expect(backend.bytesAllocated).toBe(before);
      backend.dispose();
    });
  },
);
