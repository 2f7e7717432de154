import { expect, it } from "vitest";
import { uniformShares } from "../../../src/compensation/settings.ts";
import { channelEnergies } from "../../../src/engine/balance/energies.ts";
import { scalableInputs } from "../../../src/engine/balance/inputs.ts";
import { layerInputs } from "../../../src/engine/calibrate/layerInputs.ts";
import { LayerPass } from "../../../src/engine/calibrate/layerPass.ts";
import { sampleText } from "../../../src/engine/ownText.ts";
import { floatDecoder } from "../../../src/engine/quantize/plan.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { openFixture } from "../../models/fixture.ts";
import { relativeError } from "../../relativeError.ts";

function errorOf(found: Float64Array, expected: Float64Array): number {
  return relativeError(Float32Array.from(found), Float32Array.from(expected));
}

it.each(["gemma2", "phi3-partial"])(
  "%s: energies are those of what it read, its first token too",
  async (name) => {
    const checkpoint = await openFixture(name);
    const backend = await openWasm();
    const before = backend.bytesAllocated;
    const spec = floatDecoder(checkpoint);
    const inputs = scalableInputs(spec);
    const run = { spec, checkpoint, backend, sequences: 3, sequenceLength: 20, first: 1 };
    const energies = await channelEnergies(inputs, run);
    expect(backend.bytesAllocated).toBe(before);
    const found = energies.map(({ inputs }) => inputs);

    // Nobody reads the last token.
    const sequences = (await sampleText({ ...run, seed: 0 })).map((ids) => ids.slice(0, -1));
    const pass = new LayerPass(spec, checkpoint, backend, sequences);
    const hidden = await pass.embed();
    let at = 0;
    for (let index = 0; index < spec.layers.length; index++) {
      const layer = await pass.load(index);
      const seen: Float64Array[] = [];
      await layerInputs(pass, layer, hidden, ([weight], values) => {
        const place = inputs.slice(at).findIndex(({ readers }) => readers[0].weight === weight);
        const { columns } = inputs[at + place];
        seen[place] ??= new Float64Array(columns);
        values.forEach((value, i) => {
          seen[place][i % columns] += value ** 2 / pass.tokens;
        });
      });
      pass.free(layer);
      for (const expected of seen) expect(errorOf(found[at++], expected)).toBeLessThan(1e-5);
    }
    expect(at).toBe(found.length);
    for (const [i, { readers, columns }] of inputs.entries()) {
      const rows = readers.reduce((sum, { rows }) => sum + rows, 0);
      const expected = new Float64Array(columns);
      for (const { weight, firstRow = 0, rows: count } of readers) {
        const values = await checkpoint.tensors.get(weight)!.readRows(firstRow, firstRow + count);
        values.forEach((value, at) => {
          expected[at % columns] += value ** 2 / rows;
        });
      }
      expect(errorOf(energies[i].weights, expected)).toBeLessThan(1e-6);
    }
    pass.dispose();
    backend.dispose();
  },
);

it("blends what compensation leaves with all of it", async () => {
  const checkpoint = await openFixture("llama-linear");
  const backend = await openWasm();
  const spec = floatDecoder(checkpoint);
  const inputs = scalableInputs(spec);
  const run = { spec, checkpoint, backend, sequences: 3, sequenceLength: 20, first: 1 };
  const measured = async (channels?: number) => {
    const compensation =
      channels === undefined ? undefined : { channels: uniformShares(channels), blend: 0.25 };
    const energies = await channelEnergies(inputs, { ...run, compensation });
    return energies.map(({ inputs }) => inputs);
  };
  const plain = await measured();
  const [none, some, all] = [await measured(0), await measured(128), await measured(1024)];
  const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);
  for (const [i, energies] of plain.entries()) {
    expect(errorOf(none[i], energies)).toBeLessThan(1e-6);
    const quarter = energies.map((each) => each / 4);
    expect(errorOf(all[i], quarter)).toBeLessThan(1e-6);
    expect(sum(some[i])).toBeLessThan(0.9 * sum(energies));
    expect(sum(some[i])).toBeGreaterThan(0.25 * sum(energies));
  }
  backend.dispose();
});
