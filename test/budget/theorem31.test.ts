import fc from "fast-check";
import { expect, test } from "vitest";
import { idealBits, idealLoss } from "../../src/budget/theorem31.ts";

const layers = fc.array(
  fc.record({
    weights: fc.integer({ min: 1, max: 1000 }),
    sensitivity: fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 100, noNaN: true })),
  }),
  { minLength: 1, maxLength: 12 },
);

test("spends the budget, and its slopes are equal where bits are above the least", () => {
  fc.assert(
    fc.property(layers, fc.double({ min: 0.5, max: 6, noNaN: true }), (list, average) => {
      const weights = list.reduce((sum, each) => sum + each.weights, 0);
      const bits = idealBits(list, average * weights, 0.5);
      expect(Math.min(...bits)).toBeGreaterThanOrEqual(0.5);
      if (list.some(({ sensitivity }) => sensitivity > 0)) {
        const spent = list.reduce((sum, each, i) => sum + each.weights * bits[i], 0);
        expect(spent / weights).toBeCloseTo(average, 9);
      }
      // The condition of optimality: a / weights 2^(-2b) equal above the least, no larger at the least.
      const slopes = list.map(({ sensitivity, weights: w }, i) => Math.log2(sensitivity / w) - 2 * bits[i]);
      const above = slopes.filter((_, i) => bits[i] > 0.5 + 1e-9);
      for (const slope of above) expect(slope).toBeCloseTo(above[0], 6);
      if (above.length > 0) expect(Math.max(...slopes)).toBeLessThanOrEqual(above[0] + 1e-6);
    }),
  );
});

test("two layers by hand", () => {
  // a/w of 4 and 1: one bit apart, around the average.
  const list = [
    { weights: 10, sensitivity: 40 },
    { weights: 10, sensitivity: 10 },
  ];
  const bits = idealBits(list, 60, 1);
  expect([...bits]).toEqual([3.5, 2.5]);
  expect(idealLoss(list, bits)).toBeCloseTo(40 / 128 + 10 / 32, 12);
});

test("a budget below the least, and no sensitivity at all", () => {
  expect([...idealBits([{ weights: 3, sensitivity: 1 }], 1, 2)]).toEqual([2]);
  expect([...idealBits([{ weights: 3, sensitivity: 0 }], 30, 2)]).toEqual([2]);
});
