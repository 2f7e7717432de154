import { describe, expect, it } from "vitest";
import { NearestPoint } from "../../src/quantizers/nearest.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";

function plainNearest(points: Float32Array, x: number, y: number): number {
  let best = 0;
  const distance = (i: number) => (points[2 * i] - x) ** 2 + (points[2 * i + 1] - y) ** 2;
  for (let i = 1; 2 * i < points.length; i++) if (distance(i) < distance(best)) best = i;
  return best;
}

describe("NearestPoint", () => {
  it.each([1, 2, 3, 16, 100, 1024])("agrees with a search of all %i points", (count) => {
    const points = fillGaussian(new Float32Array(2 * count), count);
    const nearest = new NearestPoint(points);
    // Some of these lie far outside the grid.
    const samples = fillGaussian(new Float32Array(4000), 5).map((v, i) => (i % 100 < 2 ? 9 * v : v));
    for (let i = 0; i < samples.length; i += 2) {
      const found = nearest.find(samples[i], samples[i + 1]);
      expect(found).toBe(plainNearest(points, samples[i], samples[i + 1]));
    }
  });

  it("gives some point for what is not finite", () => {
    const nearest = new NearestPoint(Float32Array.of(0, 0, 1, 1));
    expect(nearest.find(Number.NaN, 0)).toBe(0);
    expect(nearest.find(Infinity, 0)).toBe(0);
  });
});
