import { expect, it } from "vitest";
import { fisherLoss } from "../../../src/engine/gradient/fisherLoss.ts";

const size = 6;
const logits = Float32Array.of(2, 0.5, -1, 1.5, -3, 0);

function probabilities(): number[] {
  const powers = Array.from(logits, Math.exp);
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

it("draws gradients whose covariance is that of labels drawn from the predictions", async () => {
  const p = probabilities();
  const draws = 40_000;
  const gradients = await fisherLoss(size, 7)(
    Float32Array.from({ length: draws * size }, (_, i) => logits[i % size]),
    0,
    0,
  );
  const mean = new Float64Array(size);
  const second = new Float64Array(size * size);
  for (let at = 0; at < gradients.length; at += size) {
    const row = gradients.subarray(at, at + size);
    for (let i = 0; i < size; i++) {
      mean[i] += row[i] / draws;
      for (let j = 0; j < size; j++) second[i * size + j] += (row[i] * row[j]) / draws;
    }
  }
  for (let i = 0; i < size; i++) {
    expect(Math.abs(mean[i])).toBeLessThan(0.015);
    for (let j = 0; j < size; j++) {
      const expected = (i === j ? p[i] : 0) - p[i] * p[j];
      expect(Math.abs(second[i * size + j] - expected)).toBeLessThan(0.006);
    }
  }
});

it("a shift of all logits, which changes no prediction, has no gradient", async () => {
  const gradient = await fisherLoss(size, 3)(logits, 2, 5);
  expect(Math.abs(gradient.reduce((sum, value) => sum + value, 0))).toBeLessThan(1e-6);
});
