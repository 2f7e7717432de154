import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LAYER_KINDS } from "../../src/compensation/groups.ts";
import {
  costOf,
  type MeasuredCosts,
  MOST_CHANNELS,
  readerCounts,
  TUNING_STEP,
  tuneChannels,
} from "../../src/compensation/tuner.ts";

const at = [16, 64, 128, 256];
const costsOf = (seconds: readonly (readonly number[])[]) =>
  Object.fromEntries(
    LAYER_KINDS.map((kind, k) => [kind, at.map((channels, i) => ({ channels, seconds: seconds[k][i] }))]),
  ) as unknown as MeasuredCosts;
const points = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 });
const measured = fc.tuple(points, points, points, points).map(costsOf);
const totalOf = (costs: MeasuredCosts, shares: Readonly<Record<string, number>>) =>
  LAYER_KINDS.reduce((sum, kind) => sum + costOf(costs, kind, shares[kind]), 0);

describe("tuneChannels", () => {
  it("stays within the budget, and no kind has room for another step", () => {
    fc.assert(
      fc.property(measured, fc.double({ min: 0, max: 4, noNaN: true }), (costs, budget) => {
        const shares = tuneChannels(costs, budget);
        expect(totalOf(costs, shares)).toBeLessThanOrEqual(budget);
        for (const kind of LAYER_KINDS) {
          const raised = { ...shares, [kind]: shares[kind] + TUNING_STEP };
          expect(raised[kind] > MOST_CHANNELS || totalOf(costs, raised) > budget).toBe(true);
        }
      }),
    );
  });

  it("gives more to what costs less", () => {
    const costs = costsOf([4, 2, 8, 1].map((perChannel) => at.map((channels) => channels * perChannel)));
    // 32 of each cost 480; what is left buys steps of 4 where they cost least.
    expect(tuneChannels(costs, 480 + 16)).toEqual({ qkv: 32, o: 36, gateUp: 32, down: 40 });
    expect(tuneChannels(costs, 0)).toEqual({ qkv: 0, o: 0, gateUp: 0, down: 0 });
  });
});

it("rows may be read by one thread, by twice as many each time, or by all", () => {
  expect([1, 2, 6, 8].map(readerCounts)).toEqual([[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]);
});
