import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fillGaussian } from "../../src/quantizers/random.ts";
import { allSchemes, parseScheme } from "../../src/quantizers/scheme.ts";
import { gaussianSpiral, swizzleSum, tableCode, trellisCode } from "../../src/quantizers/tcq/code.ts";
import { createTileEncoder, seamWindow } from "../../src/quantizers/tcq/encoder.ts";
import { tcqQuantizer } from "../../src/quantizers/tcq/index.ts";
import { referenceEncode } from "../../src/quantizers/tcq/reference.ts";
import { packStates, tileBytes, tileLayout, unpackStates } from "../../src/quantizers/tcq/trellis.ts";

const rates = [1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5];
/** Mean squared errors published with Q-Palette, and the figure at 4 bits. */
const published: Record<number, number> = {
  1.5: 0.14034,
  2: 0.07101,
  2.5: 0.03631,
  3: 0.01891,
  3.5: 0.01018,
  4: 0.0052,
  4.5: 0.00303,
  5: 0.00162,
};

function squaredError(
  values: Float32Array,
  pairs: ArrayLike<number>,
  unit: number,
  states: Uint16Array,
): number {
  let error = 0;
  for (let i = 0; i < 256; i++) error += (values[i] - pairs[2 * states[i >> 1] + (i & 1)] * unit) ** 2;
  return error;
}

describe("trellis codes", () => {
  it.each(rates)("are integers of 7 bits at %d bits", (rate) => {
    for (const family of ["tcq", "tcq-s"] as const) {
      const { pairs, unit } = trellisCode(family, rate);
      expect(pairs.reduce((most, value) => Math.max(most, Math.abs(value)), 0)).toBeLessThanOrEqual(63);
      expect(63 * unit).toBeLessThan(4.5);
    }
    const { low, high } = swizzleSum(rate);
    for (let i = 0; i < 16; i++) expect([low[15 - i] + low[i], high[15 - i] + high[i]]).toEqual([0, 0]);
  });

  it("has a table that no rounding error of an engine can change", () => {
    for (const rate of [2, 4]) {
      const { tableBits, table } = tableCode(rate);
      const spiral = gaussianSpiral(1 << tableBits);
      const largest = spiral.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      expect(table).toHaveLength(2 << tableBits);
      for (const value of spiral) {
        const scaled = (63 * value) / largest;
        expect(Math.abs(scaled - Math.floor(scaled) - 0.5)).toBeGreaterThan(1e-5);
      }
    }
  });
});

describe("bit stream", () => {
  it("returns the states that were packed", () => {
    fc.assert(
      fc.property(fc.constantFrom(...rates), fc.infiniteStream(fc.nat(65535)), (rate, words) => {
        const source = Uint8Array.from(
          { length: tileBytes(rate) + 3 },
          () => (words.next().value as number) & 255,
        );
        const states = new Uint16Array(128);
        unpackStates(source, rate, 3, states);
        const packed = new Uint8Array(tileBytes(rate) + 3);
        packStates(states, rate, packed, 3);
        expect(packed.subarray(3)).toEqual(source.subarray(3));
        const bits = 2 * rate;
        for (let t = 0; t < 128; t++)
          expect(states[t] >> bits).toBe(states[(t + 1) % 128] & (0xffff >> bits));
      }),
      { numRuns: 40 },
    );
  });
});

describe("Viterbi kernel", () => {
  it.each(rates)("costs what the reference does at %d bits, to 1e-4", (rate) => {
    const family = rate % 1 === 0 ? "tcq-s" : "tcq";
    const code = trellisCode(family, rate);
    const values = fillGaussian(new Float32Array(256), 5 + 2 * rate);
    const states = createTileEncoder().encode(values, code);
    const backwards = Float64Array.from(values, (_, i) => values[2 * (127 - (i >> 1)) + (i & 1)]);
    const scaled = Float64Array.from(code.pairs, (value) => value * code.unit);
    const { error } = referenceEncode(backwards, scaled, 2 * rate, seamWindow(rate));
    expect(squaredError(values, code.pairs, code.unit, states)).toBeCloseTo(error, -Math.log10(error * 2e-4));
  });

  it("loses less than 3% with a beam", () => {
    const encode = (beam: number) => {
      const quantizer = tcqQuantizer(parseScheme("tcq-s-3"), beam);
      const weights = fillGaussian(new Float32Array(16 * 256), 3);
      const decoded = quantizer.decode(quantizer.encode(weights, 16, 256));
      return weights.reduce((sum, value, i) => sum + (value - decoded[i]) ** 2, 0);
    };
    expect(encode(1.25)).toBeLessThan(1.03 * encode(0));
  });

  it("survives outliers, zeros and values that are no numbers", () => {
    const code = trellisCode("tcq", 3);
    const encoder = createTileEncoder();
    for (const value of [0, 1e30, -1e30, Number.NaN, Number.POSITIVE_INFINITY]) {
      const states = encoder.encode(new Float32Array(256).fill(value), code);
      for (let t = 0; t < 128; t++) expect(states[t] >> 6).toBe(states[(t + 1) % 128] & 1023);
    }
  });
});

describe("quantizer", () => {
  const schemes = allSchemes().filter(({ family }) => family === "tcq" || family === "tcq-s");

  it.each(schemes.map(({ name }) => name))("%s is as near to a Gaussian as published", (name) => {
    const scheme = parseScheme(name);
    const quantizer = tcqQuantizer(scheme);
    const weights = fillGaussian(new Float32Array(32 * 256), 11);
    const decoded = quantizer.decode(quantizer.encode(weights, 32, 256));
    let error = 0;
    let energy = 0;
    for (let i = 0; i < weights.length; i++) {
      error += (weights[i] - decoded[i]) ** 2;
      energy += weights[i] ** 2;
    }
    const at = (bits: number) => published[bits] ?? (published[bits - 0.25] + published[bits + 0.25]) / 2;
    // 32 sequences scatter by a few percent; bench/tcq-encode.ts measures 1024.
    expect(error / energy).toBeLessThan(1.03 * at(scheme.bits));
  });

  it("encodes by columns, by bands and whole to the same bytes, on ragged shapes", () => {
    for (const [rows, columns] of [
      [1, 1],
      [17, 31],
      [33, 40],
    ]) {
      const quantizer = tcqQuantizer(parseScheme("tcq-s-2.75"));
      const weights = fillGaussian(new Float32Array(rows * columns), rows);
      const scales = new Float32Array(rows).fill(1);
      const whole = quantizer.encode(weights, rows, columns, { scales });
      expect(whole.codes).toHaveLength(quantizer.codesByteLength(rows, columns));
      const codes = new Uint8Array(whole.codes.length);
      const { bandBytes } = tileLayout(2.75, columns);
      for (let top = 0; top < rows; top += 16) {
        const height = Math.min(16, rows - top);
        for (let column = 0; column < columns; column += 16) {
          const width = Math.min(16, columns - column);
          const block = new Float32Array(height * width);
          for (let i = 0; i < block.length; i++) {
            block[i] = weights[(top + Math.floor(i / width)) * columns + column + (i % width)];
          }
          const band = codes.subarray((top / 16) * bandBytes);
          tcqQuantizer(quantizer.scheme).encodeColumns(block, height, column, width, band, columns);
          const decoded = quantizer.decode({ ...whole, rows: height, codes: band, scales });
          for (let i = 0; i < block.length; i++) {
            const at = Math.floor(i / width) * columns + column + (i % width);
            expect(block[i]).toBe(decoded[at]);
          }
        }
      }
      expect(codes).toEqual(whole.codes);
    }
  });

  it("refuses other schemes", () => {
    expect(() => tcqQuantizer(parseScheme("nuq-4"))).toThrow(/nuq-4 is no trellis-coded scheme/);
  });
});
