import { expect, it } from "vitest";
import { AgreementMeter } from "../../../src/engine/evaluate/agreement.ts";
import { Model } from "../../../src/engine/model.ts";
import { weightTensors } from "../../../src/engine/sensitivity/tensors.ts";
import { Trials } from "../../../src/engine/sensitivity/trials.ts";
import { ReferenceBackend } from "../../../src/ops/reference.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { openFixture } from "../../models/fixture.ts";

// Tied and untied heads, fused tensors, soft caps.
it.each(["llama3-v5", "gemma2", "phi3-partial"])(
  "a trial moves the predictions as the changed model does, %s",
  async (name) => {
    const checkpoint = await openFixture(name);
    const backend = await openWasm();
    const floats = await Model.load(checkpoint, backend);
    const { spec } = floats;
    const sequences = [12, 31].map((length) => Array.from({ length }, (_, i) => (i * i + length) % 90));
    const trials = new Trials(spec, backend, floats.weights, 31);
    const tensors = weightTensors(spec);
    for (const tensor of [tensors[0], tensors[3], tensors.at(-2)!, tensors.at(-1)!]) {
      const stored = checkpoint.tensors.get(tensor.name)!;
      const values = (await stored.readRows(0, tensor.rows)).map(
        (value, i) => value * (1 + 0.3 * Math.sin(i)),
      );
      const changed = { ...stored, readRows: async (from: number, to: number) => rowsOf(values, from, to) };
      const rowsOf = (all: Float32Array, from: number, to: number) =>
        all.slice(from * tensor.columns, to * tensor.columns);
      const copy = { ...checkpoint, tensors: new Map(checkpoint.tensors).set(tensor.name, changed) };
      const model = await Model.load(copy, new ReferenceBackend());
      for (const ids of sequences) {
        await trials.start(ids);
        const meter = new AgreementMeter(spec.vocabularySize);
        const input = { ids, positions: ids.map((_, i) => i), length: ids.length };
        meter.add(await model.runner.step(input, "all"), await floats.runner.step(input, "all"));
        const expected = meter.result().meanKlDivergence;
        expect(expected).toBeGreaterThan(1e-4);
        expect(Math.abs((await trials.divergence([{ tensor, values }])) / expected - 1)).toBeLessThan(1e-3);
      }
    }
    trials.dispose();
    backend.dispose();
  },
);
