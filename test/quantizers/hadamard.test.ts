import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planHadamard } from "../../src/quantizers/hadamard/plan.ts";
import { rotateRows, rotationFor } from "../../src/quantizers/hadamard/rotation.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";

/** Widths of real models; none may fall back to blocks. */
const widths = [
  512, 576, 896, 1408, 1536, 2048, 2560, 3072, 3584, 4096, 4864, 5120, 5632, 6144, 7168, 8192, 8960, 9216,
  9728, 11008, 13824, 14336, 17408, 18944, 21504, 25600, 27648, 28672, 29568,
];

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

describe("bases", () => {
  const orders = new Map(
    [...widths, 92 * 4, 172, 68, 244, 16 * 29, 8 * 39].flatMap((size) =>
      planHadamard(size).bases.map(({ order, matrix }) => [order, matrix]),
    ),
  );
  it.each([...orders])("order %i is a Hadamard matrix", (order, matrix) => {
    for (let i = 0; i < order; i++) {
      for (let j = i; j < order; j++) {
        let sum = 0;
        for (let k = 0; k < order; k++) sum += matrix[i * order + k] * matrix[j * order + k];
        if (sum !== (i === j ? order : 0)) expect.fail(`rows ${i} and ${j} of order ${order}: ${sum}`);
      }
    }
    expect(matrix.every((entry) => Math.abs(entry) === 1)).toBe(true);
  });
});

describe("plans", () => {
  it.each(widths)("width %i is one full Hadamard matrix", (size) => {
    const { blocks, bases, stages } = planHadamard(size);
    expect(blocks).toBe(1);
    expect(bases.reduce((product, { order }) => product * order, 2 ** stages)).toBe(size);
    expect(bases.reduce((sum, { order }) => sum + order, 0)).toBeLessThanOrEqual(172);
  });

  it.each([
    [1, 1],
    [2, 1],
    [17, 17],
    [31, 31],
    [33, 33],
    [118, 59],
    [4 * 59, 59],
  ])("size %i falls back to %i blocks", (size, blocks) => {
    expect(planHadamard(size).blocks).toBe(blocks);
  });
});

describe("rotations", () => {
  it.each(widths)("width %i is orthonormal and undone by its inverse", (size) => {
    const rotation = rotationFor(size, 7);
    const x = fillGaussian(new Float32Array(2 * size), size);
    const y = x.slice();
    rotation.apply(y);
    for (const [a, b] of [
      [0, 0],
      [0, 1],
      [1, 1],
    ]) {
      const before = dot(x.subarray(a * size, (a + 1) * size), x.subarray(b * size, (b + 1) * size));
      const after = dot(y.subarray(a * size, (a + 1) * size), y.subarray(b * size, (b + 1) * size));
      expect(Math.abs(after - before) / size).toBeLessThan(1e-6);
    }
    rotation.inverse(y);
    const error = x.map((v, i) => v - y[i]);
    expect(Math.sqrt(dot(error, error) / dot(x, x))).toBeLessThan(1e-6);
    const unit = new Float32Array(size);
    unit[size >> 1] = 1;
    rotation.apply(unit);
    expect(unit.every((v) => Math.abs(Math.abs(v) * Math.sqrt(size) - 1) < 1e-4)).toBe(true);
  });

  it("has orthonormal columns whatever the size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.integer(), (size, seed) => {
        const identity = new Float32Array(size * size);
        for (let i = 0; i < size; i++) identity[i * size + i] = 1;
        const rotation = rotationFor(size, seed);
        rotation.apply(identity);
        for (let i = 0; i < size; i++) {
          for (let j = 0; j <= i; j++) {
            const a = identity.subarray(i * size, (i + 1) * size);
            const b = identity.subarray(j * size, (j + 1) * size);
            expect(dot(a, b)).toBeCloseTo(i === j ? 1 : 0, 5);
          }
        }
      }),
      { numRuns: 25 },
    );
  });

  it("keeps products: W x = (W R^T)(R x)", () => {
    const [rows, columns] = [3, 576];
    const weights = fillGaussian(new Float32Array(rows * columns), 1);
    const x = fillGaussian(new Float32Array(columns), 2);
    const rotation = rotationFor(columns, 3);
    const rotated = rotateRows(weights, rows, columns, rotation);
    const rx = x.slice();
    rotation.apply(rx);
    for (let row = 0; row < rows; row++) {
      const [from, to] = [row * columns, (row + 1) * columns];
      expect(dot(rotated.subarray(from, to), rx)).toBeCloseTo(dot(weights.subarray(from, to), x), 3);
    }
  });

  it("never changes: signs are part of the checkpoint format", () => {
    expect([...rotationFor(16, 1).signs]).toMatchInlineSnapshot(`
      [
        -1,
        1,
        1,
        1,
        1,
        -1,
        1,
        1,
        1,
        -1,
        1,
        1,
        -1,
        -1,
        1,
        -1,
      ]
    `);
  });

  it("refuses what does not fit", () => {
    expect(() => rotationFor(0, 1)).toThrow(/size 0/);
    expect(() => rotationFor(8, 1).apply(new Float32Array(12))).toThrow(/12 values/);
    expect(() => rotateRows(new Float32Array(12), 3, 4, rotationFor(8, 1))).toThrow(/\[3, 4\]/);
  });
});
