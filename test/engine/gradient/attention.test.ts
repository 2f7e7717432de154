import { describe, expect, it } from "vitest";
import { attentionGradient } from "../../../src/engine/gradient/attention.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";
import { plainAttentionGradient } from "./plainAttention.ts";

describe("attentionGradient agrees with the plain one", () => {
  it.each([
    { rows: 1, heads: 1, kvHeads: 1, headSize: 4, window: 0, softcap: 0 },
    { rows: 17, heads: 3, kvHeads: 3, headSize: 6, window: 5, softcap: 0 },
    { rows: 130, heads: 6, kvHeads: 2, headSize: 8, window: 0, softcap: 2 },
    { rows: 300, heads: 4, kvHeads: 1, headSize: 10, window: 150, softcap: 0 },
    { rows: 257, heads: 2, kvHeads: 2, headSize: 33, window: 31, softcap: 5 },
  ])("%o", async (shape) => {
    const { rows, heads, kvHeads, headSize } = shape;
    const queries = rows * heads * headSize;
    const keys = rows * kvHeads * headSize;
    const inputs = {
      q: fillGaussian(new Float32Array(queries), 1),
      keys: fillGaussian(new Float32Array(keys), 2),
      values: fillGaussian(new Float32Array(keys), 3),
    };
    const dOut = fillGaussian(new Float32Array(queries), 4);
    const scaled = { ...shape, scale: 0.7 };
    const expected = plainAttentionGradient(inputs, dOut, scaled);
    const backend = await openWasm();
    const before = backend.bytesAllocated;
    const found = await attentionGradient(backend, inputs, dOut, scaled);
    expect(backend.bytesAllocated).toBe(before);
    backend.dispose();
    for (const name of ["q", "keys", "values"] as const) {
      const size = Math.hypot(...expected[name]);
      const difference = Math.hypot(...found[name].map((value, i) => value - expected[name][i]));
      expect(difference).toBeLessThan(1e-5 * size + 1e-7);
    }
  });
});
