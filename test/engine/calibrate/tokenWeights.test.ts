import { describe, expect, it } from "vitest";
import { tokenWeights } from "../../../src/engine/calibrate/tokenWeights.ts";
import { decoderGradient } from "../../../src/engine/gradient/decoder.ts";
import { fisherLoss } from "../../../src/engine/gradient/fisherLoss.ts";
import { Model } from "../../../src/engine/model.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { openFixture } from "../../models/fixture.ts";

describe.each(["llama-linear", "phi3-partial"])("weights of tokens, %s", (name) => {
  it("are blends of ones and of what gradients say, for the sequences that have them", async () => {
    const checkpoint = await openFixture(name);
    const backend = await openWasm();
    const { spec } = await Model.load(checkpoint, backend);
    const before = backend.bytesAllocated;
    const sequences = Array.from({ length: 4 }, (_, s) =>
      Array.from({ length: 12 }, (_, i) => (i * i + 7 * s) % 90),
    );
    const run = { spec, checkpoint, backend, sequences };
    const weights = await tokenWeights({ ...run, gradientTokens: 24 });
    expect(backend.bytesAllocated).toBe(before);
    const { attention, mlp } = spec.layers[0];
    expect(weights.get(mlp.up.weight)).toBe(weights.get(mlp.gate.weight));
    const names = new Set(
      [attention.q, attention.k, attention.v, attention.o, mlp.gate, mlp.up, mlp.down].map(
        ({ weight }) => weight,
      ),
    );
    for (const name of names) expect(weights.has(name), name).toBe(true);
    for (const values of weights.values()) {
      expect(values).toHaveLength(48);
      expect(values.reduce((sum, value) => sum + value, 0) / 48).toBeCloseTo(1, 4);
      // Sequences 1 and 3 have no gradients.
      for (const first of [12, 36])
        expect(new Set(values.subarray(first, first + 12))).toEqual(new Set([0.5]));
      expect(Math.min(...values)).toBeGreaterThanOrEqual(0.5);
    }
    const squares = new Float64Array(24);
    await decoderGradient({
      ...run,
      sequences: [sequences[0], sequences[2]],
      loss: fisherLoss(spec.vocabularySize, 0),
      observer: {
        linear({ weight, rows }, sequence, _, dOut) {
          if (weight !== mlp.down.weight) return;
          for (let i = 0; i < dOut.length; i++) squares[sequence * 12 + Math.floor(i / rows)] += dOut[i] ** 2;
        },
      },
    });
    const mean = squares.reduce((sum, value) => sum + value, 0) / 48;
    const found = weights.get(mlp.down.weight)!;
    for (let t = 0; t < 12; t++) expect(found[t]).toBeCloseTo(0.5 + (0.5 * squares[t]) / mean, 3);
    backend.dispose();
  });
});
