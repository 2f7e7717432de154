import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decompose, shiftsOf, throughCodebook } from "../../src/mapping/partition.ts";
import { dprProduct, scaledProduct } from "../../src/mapping/reference.ts";
import { enumerate, partitionsOf, promote, wasmUnits } from "../../src/mapping/space.ts";

const operand = (count: number) =>
  fc.record({ bits: fc.integer({ min: 1, max: 8 }), signed: fc.boolean() }).chain(({ bits, signed }) => {
    const [min, max] = signed ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
    const values = fc.array(fc.integer({ min, max }), { minLength: count, maxLength: count });
    const partition = fc
      .constantFrom(...partitionsOf(bits))
      .chain((parts) => fc.shuffledSubarray(parts, { minLength: parts.length, maxLength: parts.length }));
    return fc.record({ values, partition }).map((drawn) => ({ ...drawn, bits, signed }));
  });

describe("the DPR model", () => {
  it("decomposes any operand by any partition into parts that add up to it", () => {
    fc.assert(
      fc.property(operand(6), (drawn) => {
        const parts = decompose(drawn, drawn.partition);
        const shifts = shiftsOf(drawn.partition);
        const sums = drawn.values.map((_, i) =>
          parts.reduce((sum, part, p) => sum + part.values[i] * 2 ** shifts[p], 0),
        );
        expect(sums).toEqual(drawn.values);
        for (const [p, part] of parts.entries()) {
          const most = 2 ** drawn.partition[p] - 1;
          if (!part.signed) expect(Array.from(part.values).every((v) => v >= 0 && v <= most)).toBe(true);
        }
      }),
    );
  });

  it("multiplies the same whatever the partitions", () => {
    const [m, n, k] = [2, 3, 7];
    fc.assert(
      fc.property(operand(m * k), operand(n * k), (x, w) => {
        const y = dprProduct(x, w, { activations: x.partition, weights: w.partition }, { m, n, k });
        const whole = dprProduct(x, w, { activations: [x.bits], weights: [w.bits] }, { m, n, k });
        expect([...y]).toEqual([...whole]);
      }),
    );
  });

  it("refuses a partition of other bits", () => {
    expect(() => decompose({ values: [1], bits: 4, signed: false }, [2, 1])).toThrow(
      /\(2,1\) has 3 bits, not 4/,
    );
  });

  it("takes codes as the integers of a codebook", () => {
    expect(throughCodebook([0, 3, 1], [-9, -2, 2, 9])).toEqual({
      values: [-9, 9, -2],
      bits: 5,
      signed: true,
    });
    expect(throughCodebook([1, 0], [0, 7])).toEqual({ values: [7, 0], bits: 3, signed: false });
  });

  it("scales rows, and groups of columns", () => {
    const x = { values: [1, 2, 3, 4, 5], bits: 4, signed: false };
    const w = { values: [1, 1, 1, 1, -1], bits: 2, signed: true };
    const y = scaledProduct(
      x,
      { values: [10, 100], group: 4 },
      w,
      { values: [0.5] },
      { weights: [1, 1], activations: [2, 2] },
      { m: 1, n: 1, k: 5 },
    );
    expect([...y]).toEqual([(10 * (1 + 2 + 3 + 4) - 100 * 5) / 2]);
  });
});

describe("the space of partitions", () => {
  it("is all of it: 5 partitions of 4 bits by 22 of 8", () => {
    expect(partitionsOf(4)).toHaveLength(5);
    expect(enumerate(4, 8, wasmUnits("relaxed", 8))).toHaveLength(110);
  });

  it("promotes to the smallest unit that takes all parts", () => {
    const units = wasmUnits("relaxed", 8);
    expect(promote({ weights: [1, 1], activations: [1] }, units)?.name).toBe("and + popcnt");
    expect(promote({ weights: [1, 1], activations: [4, 4] }, units)?.name).toBe("table");
    expect(promote({ weights: [4], activations: [8] }, units)?.name).toBe("dot 7 x 8");
    expect(promote({ weights: [8], activations: [8] }, units)?.name).toBe("dot 16 x 16");
    expect(promote({ weights: [17], activations: [8] }, units)).toBeUndefined();
  });

  it("keeps one candidate a unit at most and gives a reason for each of the others", () => {
    for (const bits of [2, 3, 4, 5, 8]) {
      const kept = enumerate(bits, 8, wasmUnits("relaxed", 8)).filter(({ pruned }) => pruned === undefined);
      expect(new Set(kept.map(({ unit }) => unit)).size).toBe(kept.length);
    }
  });
});
