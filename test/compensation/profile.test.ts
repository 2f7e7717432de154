import { expect, it } from "vitest";
import { InputProfiler, magnitudeOfRank } from "../../src/compensation/profile.ts";

it("knows mean squares, and the largest magnitude of each rank, of tokens that come in any parts", () => {
  const tokens = [
    [1, -5, 2, 0],
    [-4, 1, 3, 1],
    [0, 2, -2, 2],
  ];
  const whole = new InputProfiler(4);
  whole.add(Float32Array.from(tokens.flat()));
  const parts = new InputProfiler(4);
  for (const token of tokens) parts.add(Float32Array.from(token));
  const profile = whole.result();
  expect(parts.result()).toEqual(profile);
  expect(profile.energies).toEqual(Float32Array.from([17, 30, 17, 5], (sum) => sum / 3));
  // Sorted: 5 2 1 0, 4 3 1 1, 2 2 2 0.
  expect(profile.ranked).toEqual(Float32Array.of(5, 3, 2, 1));
  expect(profile.largest).toBe(5);
  expect([1, 2, 3, 4, 9].map((rank) => magnitudeOfRank(profile, rank))).toEqual([5, 3, 2, 1, 1]);
});
