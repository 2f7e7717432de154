import { describe, expect, it } from "vitest";
import { measureDistortion } from "../../src/quantizers/distortion.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";
import { quantizerFor } from "../../src/quantizers/registry.ts";
import { parseScheme } from "../../src/quantizers/scheme.ts";

/** Published with Q-Palette, per unit-variance Gaussian weight. */
const published: Record<string, number> = {
  "nuq-2": 0.11748,
  "nuq-3": 0.03451,
  "nuq-4": 0.0095,
  "nuq-5": 0.00251,
  "nuq-6": 6.5e-4,
  "nuq-7": 1.64e-4,
  "nuq-8": 4.15e-5,
  "vq-1.5": 0.20124,
  "vq-2": 0.10859,
  "vq-2.5": 0.05708,
  "vq-3": 0.02972,
  "vq-3.5": 0.01523,
  "vq-4": 0.00776,
  "vq-4.5": 0.00392,
  "vq-5": 0.00198,
};
const others = ["uniform-2", "uniform-3", "uniform-4", "uniform-8", "vq-6"];
const names = [...Object.keys(published), ...others];

describe.each(names)("%s", (name) => {
  const quantizer = quantizerFor(parseScheme(name));

  it("comes near the distortion-rate bound", () => {
    const { distortion, bound } = measureDistortion(quantizer, 1024, 1);
    expect(distortion).toBeGreaterThan(bound);
    if (published[name]) expect(distortion).toBeLessThan(published[name] * 1.015);
  });

  it.each([
    [1, 1],
    [3, 17],
    [5, 33],
    [2, 576],
  ])("encodes what it decoded to the same codes, [%i, %i]", (rows, columns) => {
    const weights = fillGaussian(new Float32Array(rows * columns), columns);
    const matrix = quantizer.encode(weights, rows, columns);
    expect(matrix.codes.length).toBe(quantizer.codesByteLength(rows, columns));
    const decoded = quantizer.decode(matrix);
    const again = quantizer.encode(decoded, rows, columns, { scales: matrix.scales });
    expect(again.codes).toEqual(matrix.codes);
  });

  it("rounds columns block by block as at once", () => {
    const [rows, columns, width] = [3, 26, 6];
    const weights = fillGaussian(new Float32Array(rows * columns), 4);
    const scales = new Float32Array(rows).fill(1);
    const whole = quantizer.encode(weights, rows, columns, { scales });
    const codes = new Uint8Array(whole.codes.length);
    const reconstruction = new Float32Array(rows * columns);
    for (let column = 0; column < columns; column += width) {
      const count = Math.min(width, columns - column);
      const block = new Float32Array(rows * count);
      for (let i = 0; i < block.length; i++) {
        block[i] = weights[Math.floor(i / count) * columns + column + (i % count)];
      }
      quantizer.encodeColumns(block, rows, column, count, codes, columns);
      for (let i = 0; i < block.length; i++) {
        reconstruction[Math.floor(i / count) * columns + column + (i % count)] = block[i];
      }
    }
    expect(codes).toEqual(whole.codes);
    const unit = quantizer.decode({ ...whole, scales: scales.fill(1) });
    expect(reconstruction).toEqual(unit);
  });

  it("fits the scale of each row", () => {
    const row = fillGaussian(new Float32Array(512), 9);
    const scale = quantizer.scaleOf(row);
    expect(quantizer.scaleOf(row.map((v) => 8 * v))).toBeCloseTo(8 * scale, 5);
    expect(quantizer.scaleOf(new Float32Array(8))).toBe(1);
    row[100] = 40;
    expect(quantizer.decode(quantizer.encode(row, 1, 512)).every(Number.isFinite)).toBe(true);
  });
});
