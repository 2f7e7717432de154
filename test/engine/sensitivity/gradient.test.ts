import { describe, expect, it } from "vitest";
import { RowNorms } from "../../../src/engine/gradient/rowNorms.ts";
import { Model } from "../../../src/engine/model.ts";
import { gradientSensitivities } from "../../../src/engine/sensitivity/gradient.ts";
import { noiseSensitivities } from "../../../src/engine/sensitivity/noise.ts";
import type { SensitivityPart } from "../../../src/engine/sensitivity/options.ts";
import { summarizeParts } from "../../../src/engine/sensitivity/summary.ts";
import { weightTensors } from "../../../src/engine/sensitivity/tensors.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";
import { openFixture } from "../../models/fixture.ts";

// A tied head with soft caps; fused tensors and an untied head.
describe.each(["gemma2", "phi3-partial"])("sensitivities from gradients, %s", (name) => {
  it("are those from noise", async () => {
    const checkpoint = await openFixture(name);
    const backend = await openWasm();
    const { spec, weights } = await Model.load(checkpoint, backend);
    const sequences = Array.from({ length: 24 }, (_, s) =>
      Array.from({ length: 32 }, (_, i) => (i * i * (s + 1) + 7 * s) % 90),
    );
    const common = { spec, checkpoint, backend, sequences, seed: 3 };
    const collect = async (parts: AsyncGenerator<SensitivityPart>) => {
      const all: SensitivityPart[] = [];
      for await (const part of parts) all.push(part);
      return summarizeParts(weightTensors(spec), all);
    };
    const gradient = await collect(gradientSensitivities(common));
    const noise = await collect(noiseSensitivities({ ...common, weights, norms: [0.02, 0.04] }));
    for (const [i, { name, sensitivity, standardError }] of gradient.entries()) {
      // Both are estimates; four standard errors of their difference, and curvature that noise sees.
      const error = 4 * Math.hypot(standardError, noise[i].standardError) + 0.05 * sensitivity;
      expect(Math.abs(noise[i].sensitivity - sensitivity), name).toBeLessThan(error);
      expect(standardError, name).toBeLessThan(0.25 * sensitivity);
    }
    backend.dispose();
  });
});

it.each([
  [1, 1, 1],
  [17, 33, 31],
  [40, 5, 64],
])("norms of a gradient's rows, %i tokens, %i rows of %i", async (tokens, rows, columns) => {
  const backend = await openWasm();
  const input = fillGaussian(new Float32Array(tokens * columns), 1);
  const dOut = fillGaussian(new Float32Array(tokens * rows), 2);
  const before = backend.bytesAllocated;
  const norms = new RowNorms(backend);
  await norms.squares(input, fillGaussian(new Float32Array(tokens * 3), 3), columns);
  const found = await norms.squares(input, dOut, columns);
  norms.free();
  expect(backend.bytesAllocated).toBe(before);
  for (let row = 0; row < rows; row++) {
    let expected = 0;
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let t = 0; t < tokens; t++) sum += dOut[t * rows + row] * input[t * columns + column];
      expected += sum * sum;
    }
    expect(Math.abs(found[row] / expected - 1)).toBeLessThan(1e-4);
  }
  backend.dispose();
});
