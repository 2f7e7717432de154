import { describe, expect, it } from "vitest";
import { type ChannelShares, uniformShares } from "../../../src/compensation/settings.ts";
import { LayerPass } from "../../../src/engine/calibrate/layerPass.ts";
import { Model } from "../../../src/engine/model.ts";
import { gram } from "../../../src/ops/gram/reference.ts";
import { ReferenceBackend } from "../../../src/ops/reference.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { openFixture } from "../../models/fixture.ts";
import { relativeError } from "../../relativeError.ts";

// Norms before and after, softcaps, windows; fused tensors; biases.
describe.each(["llama-linear", "gemma2", "phi3-partial", "qwen2-bf16"])("a layer at a time, %s", (name) => {
  const sequences = [3, 300, 17].map((length, s) => Array.from({ length }, (_, i) => (i * i + 5 * s) % 90));
  const limit = name === "phi3-partial" ? 60 : 100;
  const cut = sequences.map((ids) => ids.slice(0, limit));

  it("gives the model's hidden states", async () => {
    const checkpoint = await openFixture(name);
    const model = await Model.load(checkpoint, new ReferenceBackend(), { chunk: limit });
    const backend = await openWasm();
    const before = backend.bytesAllocated;
    const pass = new LayerPass(model.spec, checkpoint, backend, cut);
    const hidden = await pass.embed();
    for (let index = 0; index < model.spec.layers.length; index++) {
      const layer = await pass.load(index);
      await pass.observe(layer, hidden, { advance: true });
      pass.free(layer);
    }
    pass.dispose();
    expect(backend.bytesAllocated).toBe(before);
    const { hiddenSize } = model.spec;
    let row = 0;
    for (const ids of cut) {
      await model.runner.step({ ids, positions: ids.map((_, i) => i), length: ids.length }, "all");
      const { hidden: slot } = model.runner.forwardPlan.buffers;
      const expected = await model.backend.readFloats(slot, ids.length * hiddenSize);
      const found = hidden.subarray(row * hiddenSize, (row + ids.length) * hiddenSize);
      expect(relativeError(found, expected)).toBeLessThan(1e-4);
      row += ids.length;
    }
    backend.dispose();
  });

  it("blends sums over whole inputs with sums over what compensation leaves of them", async () => {
    const checkpoint = await openFixture(name);
    const backend = await openWasm();
    const { spec } = await Model.load(checkpoint, new ReferenceBackend());
    const pass = new LayerPass(spec, checkpoint, backend, cut);
    const hidden = await pass.embed();
    const layer = await pass.load(0);
    const before = backend.bytesAllocated;
    const observe = (channels: ChannelShares) =>
      pass.observe(layer, hidden, { advance: false, compensation: { channels, blend: 0.25 } });
    const plain = await pass.observe(layer, hidden, { advance: false });
    const some = await observe(uniformShares(128));
    // Of some kinds of layers all channels, of the others none.
    const first = await observe({ qkv: 1024, o: 0, gateUp: 1024, down: 0 });
    const second = await observe({ qkv: 0, o: 1024, gateUp: 0, down: 1024 });
    expect(backend.bytesAllocated).toBe(before);
    for (const [i, { sums, columns }] of plain.entries()) {
      const [all, none] = i % 2 === 0 ? [first, second] : [second, first];
      const quarter = sums.map((each) => each * 0.25);
      expect(relativeError(none[i].sums, sums)).toBeLessThan(1e-6);
      expect(relativeError(all[i].sums, quarter)).toBeLessThan(1e-6);
      let [whole, left] = [0, 0];
      for (let c = 0; c < columns; c++) {
        whole += sums[c * columns + c];
        left += some[i].sums[c * columns + c];
      }
      expect(left).toBeLessThan(0.9 * whole);
      expect(left).toBeGreaterThan(0.25 * whole);
    }
    backend.dispose();
  });

  it("sums the inputs of its linear weights", async () => {
    const checkpoint = await openFixture(name);
    const backend = new ReferenceBackend();
    const { spec } = await Model.load(checkpoint, new ReferenceBackend());
    const pass = new LayerPass(spec, checkpoint, backend, cut);
    const hidden = await pass.embed();
    const untouched = hidden.slice();
    const layer = await pass.load(0);
    const grams = await pass.observe(layer, hidden, { advance: false });
    expect(hidden).toEqual(untouched);
    const { attention, mlp, norms } = spec.layers[0];
    const groups = [[attention.q, attention.k, attention.v], [attention.o], [mlp.gate, mlp.up], [mlp.down]];
    expect(grams.map(({ weights }) => weights)).toEqual(
      groups.map((group) => [...new Set(group.map(({ weight }) => weight))]),
    );
    expect(grams.map(({ columns }) => columns)).toEqual(groups.map(([{ columns }]) => columns));
    // The first input is known: the normed embeddings.
    if (norms.beforeAttention) {
      const size = spec.hiddenSize;
      const tensor = checkpoint.tensors.get(norms.beforeAttention.weight)!;
      const weight = await tensor.readRows(0, size);
      const normed = hidden.map((value, at) => {
        const row = hidden.subarray(at - (at % size), at - (at % size) + size);
        const power = row.reduce((sum, x) => sum + x * x, 0) / size;
        return (value / Math.sqrt(power + spec.normEpsilon)) * (weight[at % size] + spec.normOffset);
      });
      const sums = new Float32Array(size * size);
      gram(normed, undefined, sums, hidden.length / size, size);
      expect(relativeError(grams[0].sums, sums)).toBeLessThan(1e-5);
      // Some tokens count more to one of the tensors.
      const counts = Float32Array.from({ length: hidden.length / size }, (_, t) => (t % 5) / 2);
      const tokenWeights = new Map([[attention.v.weight, counts]]);
      const weighted = await pass.observe(layer, hidden, { advance: false, tokenWeights });
      const found = weighted.find(({ weights }) => weights.includes(attention.v.weight))!;
      sums.fill(0);
      gram(normed, counts, sums, hidden.length / size, size);
      expect(relativeError(found.sums, sums)).toBeLessThan(1e-5);
      const others = weighted.filter((each) => each !== found).flatMap(({ weights }) => weights);
      expect([...found.weights, ...others].toSorted()).toEqual(
        grams.flatMap(({ weights }) => weights).toSorted(),
      );
    }
  });
});
