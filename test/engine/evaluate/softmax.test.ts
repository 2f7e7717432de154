import { expect, test } from "vitest";
import { AgreementMeter } from "../../../src/engine/evaluate/agreement.ts";
import { divergence, summarizeRow } from "../../../src/engine/evaluate/softmax.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";

function probabilities(logits: Float32Array): number[] {
  const weights = Array.from(logits, Math.exp);
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

function row(size: number, seed: number, spread: number): Float32Array {
  return fillGaussian(new Float32Array(size), seed).map((value) => value * spread);
}

test.each([1, 2, 17, 49152])("summaries of %i logits equal the plain softmax to 1e-8", (size) => {
  for (const spread of [0, 1, 12]) {
    const logits = row(size, size, spread);
    const padded = new Float32Array([9e9, ...logits, 9e9]);
    const { likeliest, logSum } = summarizeRow(padded, 1, size);
    const expected = probabilities(logits);
    expect(likeliest).toBe(expected.indexOf(Math.max(...expected)));
    const worst = expected.reduce(
      (most, p, i) => Math.max(most, Math.abs(Math.exp(logits[i] - logSum) - p) / p),
      0,
    );
    expect(worst).toBeLessThan(1e-8 * Math.max(1, spread));
  }
});

test("forbidden tokens have no probability", () => {
  const logits = Float32Array.of(-Infinity, 1, 1);
  const summary = summarizeRow(logits, 0, 3);
  expect(summary.logSum).toBeCloseTo(1 + Math.LN2, 8);
  expect(divergence(logits, summary, logits, summary, 0, 3)).toBeCloseTo(0, 8);
});

test("divergence equals its definition to 1e-6 and is 0 for equal rows", () => {
  for (const size of [2, 31, 6400]) {
    const [a, b] = [row(size, 1, 3), row(size, 2, 3)];
    const [pa, pb] = [probabilities(a), probabilities(b)];
    const expected = pa.reduce((sum, p, i) => sum + p * Math.log(p / pb[i]), 0);
    const [sa, sb] = [summarizeRow(a, 0, size), summarizeRow(b, 0, size)];
    expect(Math.abs(divergence(a, sa, b, sb, 0, size) / expected - 1)).toBeLessThan(1e-6);
    expect(divergence(a, sa, a, sa, 0, size)).toBe(0);
  }
});

test("agreement counts equal likeliest tokens and interpolates the percentile", () => {
  const meter = new AgreementMeter(2);
  const divergences: number[] = [];
  for (let i = 0; i < 201; i++) {
    const [actual, expected] = [Float32Array.of(0, i < 50 ? 1 : -1), Float32Array.of(0, 1 + i / 100)];
    meter.add(actual, expected);
    const [p, q] = [summarizeRow(expected, 0, 2), summarizeRow(actual, 0, 2)];
    divergences.push(divergence(expected, p, actual, q, 0, 2));
  }
  const { meanKlDivergence, klDivergence99, topAgreement } = meter.result();
  expect(topAgreement).toBeCloseTo(50 / 201, 12);
  expect(meanKlDivergence).toBeCloseTo(divergences.reduce((a, b) => a + b, 0) / 201, 12);
  expect(klDivergence99).toBeCloseTo(divergences.sort((a, b) => a - b)[198], 12);
});
