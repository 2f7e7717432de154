import { describe, expect, it } from "vitest";
import { createJobRunner } from "../../../src/engine/quantize/job.ts";
import { proxyLoss } from "../../../src/quantizers/ldlq.ts";
import { fillGaussian } from "../../../src/quantizers/random.ts";

const run = createJobRunner();

/** Sums over tokens whose channels share a few directions, as real activations do. */
function correlatedSums(columns: number): Float32Array {
  const [tokens, directions] = [4 * columns, 6];
  const basis = fillGaussian(new Float32Array(directions * columns), 5);
  const factors = fillGaussian(new Float32Array(tokens * directions), 6);
  const noise = fillGaussian(new Float32Array(tokens * columns), 7);
  const x = Float32Array.from(noise, (value, at) => {
    const [t, c] = [Math.floor(at / columns), at % columns];
    let sum = 0.5 * value;
    for (let d = 0; d < directions; d++) sum += factors[t * directions + d] * basis[d * columns + c];
    return sum;
  });
  const sums = new Float32Array(columns * columns);
  for (let t = 0; t < tokens; t++) {
    const row = x.subarray(t * columns, (t + 1) * columns);
    for (let i = 0; i < columns; i++)
      for (let j = i; j < columns; j++) sums[i * columns + j] += row[i] * row[j];
  }
  return sums;
}

function mirrored(sums: Float32Array, n: number): Float32Array {
  return sums.map(
    (_, at) => sums[Math.min(Math.floor(at / n), at % n) * n + Math.max(Math.floor(at / n), at % n)],
  );
}

describe("rounding against a Hessian", () => {
  const [rows, columns] = [33, 72];
  const sums = correlatedSums(columns);
  const hessian = mirrored(sums, columns);
  const weights = fillGaussian(new Float32Array(rows * columns), 1);
  const lossOf = (decoded: Float32Array) => proxyLoss(weights, decoded, hessian, rows, columns);

  it.each([
    ["nuq-3", 1, 0],
    ["vq-2", 2, null],
    ["tcq-s-2.5", 16, 0],
  ] as const)(
    "%s loses less than plain rounding, and less with fitted scales",
    (scheme, blockColumns, rotation) => {
      const stored = { scheme, rotation };
      const options = { columns, rotation, blockColumns, damping: 0.01, activationOrder: false };
      const prepared = run({ kind: "prepare", sums, ...options });
      const calibrated = (refit: boolean) =>
        run({ kind: "ldlq", weights, rows, columns, stored, prepared, refit });
      const plain = run({ kind: "round", weights, rows, columns, stored });
      const plainLoss = lossOf(run({ kind: "decode", ...plain, columns, stored }));
      const loss = lossOf(calibrated(false).decoded);
      const fitted = calibrated(true);
      expect(loss).toBeLessThan(0.6 * plainLoss);
      expect(lossOf(fitted.decoded)).toBeLessThan(loss);
      expect(run({ kind: "decode", ...fitted, columns, stored })).toEqual(
        expect.toSatisfy((values: Float32Array) =>
          values.every((value, i) => Math.abs(value - fitted.decoded[i]) < 1e-5),
        ),
      );
    },
  );

  it("rounds an input that is never there like any", () => {
    const options = { columns, rotation: 0, blockColumns: 1, damping: 0.01, activationOrder: true };
    const prepared = run({ kind: "prepare", sums: new Float32Array(columns * columns), ...options });
    const stored = { scheme: "nuq-4", rotation: 0 };
    const job = { weights, rows, columns, stored };
    const { codes } = run({ kind: "ldlq", ...job, prepared, refit: true });
    expect(codes).toEqual(run({ kind: "round", ...job }).codes);
  });
});
