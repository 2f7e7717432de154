import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fillGaussian } from "../../src/quantizers/random.ts";
import {
  decodeResidual,
  encodeResidual,
  RESIDUAL_BITS,
  residualRowBytes,
} from "../../src/quantizers/residual.ts";

/** Mean squared error of the best uniform quantizers of a Gaussian (Max, 1960), with a little room for short rows. */
const gaussianError = { 2: 0.1188 * 1.1, 4: 0.01154 * 1.1, 8: 1.2e-4, 16: 1e-7 };

describe.each(RESIDUAL_BITS)("residuals of %i bits", (bits) => {
  it.each([
    [1, 1],
    [17, 31],
    [63, 33],
    [65, 7],
    [100, 576],
    [129, 1408],
  ])("%i x %i come back near, on the levels of their row", (rows, columns) => {
    const residual = fillGaussian(new Float32Array(rows * columns), rows);
    const encoded = encodeResidual(residual, rows, columns, bits);
    expect(encoded.codes.length).toBe(columns * residualRowBytes(rows, bits));
    const decoded = decodeResidual(encoded, rows, columns, bits);
    if (columns > 100) {
      let error = 0;
      for (let i = 0; i < residual.length; i++) error += (residual[i] - decoded[i]) ** 2;
      expect(error / residual.length).toBeLessThan(gaussianError[bits]);
    }
    const scaled = decoded.map((value, i) => value / encoded.scales[Math.floor(i / columns)]);
    const levels = scaled.map((value) => value + (2 ** bits - 1) / 2);
    if (bits < 16) expect(levels.every((level) => Math.abs(level - Math.round(level)) < 1e-3)).toBe(true);
  });

  it("keeps the channels of one input side by side, padded with zeros", () => {
    const [rows, columns] = [70, 3];
    const residual = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) residual[row * columns + 1] = 1;
    const { codes } = encodeResidual(residual, rows, columns, bits);
    const rowBytes = residualRowBytes(rows, bits);
    expect(codes.subarray(0, rowBytes)).toEqual(codes.subarray(2 * rowBytes));
    expect(codes.subarray(0, rowBytes)).not.toEqual(codes.subarray(rowBytes, 2 * rowBytes));
    // 64 rows fill whole vectors; each of the six others is the first of its byte, or two bytes.
    const end = rowBytes + 8 * bits + (bits === 16 ? 12 : 6);
    expect(codes[end - 1]).not.toBe(0);
    expect(codes.subarray(end, 2 * rowBytes).every((byte) => byte === 0)).toBe(true);
  });

  it("takes any finite values", () => {
    const value = fc.float({ min: -1000, max: 1000, noNaN: true });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 1, max: 9 }),
        fc.infiniteStream(value),
        (rows, columns, stream) => {
          const residual = Float32Array.from({ length: rows * columns }, () => stream.next().value);
          const decoded = decodeResidual(encodeResidual(residual, rows, columns, bits), rows, columns, bits);
          // Never further off than without a residual.
          for (let row = 0; row < rows; row++) {
            const [w, q] = [residual, decoded].map((all) => all.subarray(row * columns, (row + 1) * columns));
            const error = w.reduce((sum, each, i) => sum + (each - q[i]) ** 2, 0);
            const power = w.reduce((sum, each) => sum + each * each, 0);
            expect(error).toBeLessThanOrEqual(power * (1 + 1e-5) + 1e-6);
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});
