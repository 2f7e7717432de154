import { describe, expect, it } from "vitest";
import { e8Quantizer, latticeStages } from "../../src/quantizers/e8/index.ts";
import {
  absoluteValues,
  e8pPoints,
  e8pSearch,
  latticeSide,
  rootPoints,
} from "../../src/quantizers/e8/lattice.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";
import { parseScheme } from "../../src/quantizers/scheme.ts";

describe("E8P", () => {
  const points = e8pPoints();

  it("has 256 patterns and 65,536 different points of the shifted lattice", () => {
    expect(absoluteValues()).toHaveLength(256 * latticeSide);
    const seen = new Set<string>();
    for (let code = 0; code < 65536; code++) {
      const point = points.subarray(code * 8, code * 8 + 8);
      const shift = code >> 15 ? -1 : 1;
      const sum = point.reduce((total, value) => total + value - shift, 0);
      if (sum % 8 !== 0) throw new Error(`point ${code} is not on the lattice`);
      seen.add(point.join());
    }
    expect(seen.size).toBe(65536);
    const roots = rootPoints();
    expect(new Set(Array.from({ length: 256 }, (_, i) => roots.subarray(8 * i, 8 * i + 8).join())).size).toBe(
      256,
    );
  });

  it("finds the nearest point", () => {
    const values = fillGaussian(new Float32Array(8 * 20), 3);
    const search = e8pSearch(0.9);
    const distance = (offset: number, code: number) => {
      let sum = 0;
      for (let i = 0; i < 8; i++) sum += (values[offset + i] - (points[8 * code + i] * 0.9) / 4) ** 2;
      return sum;
    };
    for (let offset = 0; offset < values.length; offset += 8) {
      let least = Number.POSITIVE_INFINITY;
      for (let code = 0; code < 65536; code++) least = Math.min(least, distance(offset, code));
      expect(distance(offset, search(values, offset))).toBeCloseTo(least, 6);
    }
  });
});

describe("e8 quantizer", () => {
  it.each([
    ["e8-2", 0.094],
    ["e8-3", 0.031],
    ["e8-4", 0.0091],
  ])("%s has a distortion of at most %d", (name, most) => {
    const quantizer = e8Quantizer(parseScheme(name));
    const weights = fillGaussian(new Float32Array(32 * 512), 5);
    const decoded = quantizer.decode(quantizer.encode(weights, 32, 512));
    const sum = (f: (value: number, i: number) => number) =>
      weights.reduce((total, w, i) => total + f(w, i), 0);
    expect(sum((w, i) => (w - decoded[i]) ** 2) / sum((w) => w * w)).toBeLessThan(most);
  });

  it("encodes blocks of columns to the bytes of the whole, and returns what it decodes to", () => {
    for (const columns of [1, 8, 31]) {
      const quantizer = e8Quantizer(parseScheme("e8-3"));
      const weights = fillGaussian(new Float32Array(3 * columns), columns);
      const whole = quantizer.encode(weights, 3, columns, { scales: new Float32Array(3).fill(1) });
      const decoded = quantizer.decode(whole);
      const codes = new Uint8Array(quantizer.codesByteLength(3, columns));
      for (let column = 0; column < columns; column += 8) {
        const width = Math.min(8, columns - column);
        const at = (i: number) => Math.floor(i / width) * columns + column + (i % width);
        const block = Float32Array.from({ length: 3 * width }, (_, i) => weights[at(i)]);
        quantizer.encodeColumns(block, 3, column, width, codes, columns);
        for (let i = 0; i < block.length; i++) expect(block[i]).toBeCloseTo(decoded[at(i)], 5);
      }
      expect(codes).toEqual(whole.codes);
      expect(quantizer.decode(whole, 1, 2)).toEqual(decoded.subarray(columns, 2 * columns));
    }
  });

  it("refuses other schemes", () => {
    expect(() => latticeStages(parseScheme("vq-2"))).toThrow(/vq-2 is no lattice scheme/);
  });
});
