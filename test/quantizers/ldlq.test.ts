import { describe, expect, it } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { ldlq, proxyLoss } from "../../src/quantizers/ldlq.ts";
import { choleskyInPlace, factorHessian } from "../../src/quantizers/ldlqFactor.ts";
import type { Quantizer } from "../../src/quantizers/quantizer.ts";
import { fillGaussian } from "../../src/quantizers/random.ts";
import { quantizerFor } from "../../src/quantizers/registry.ts";
import { parseScheme } from "../../src/quantizers/scheme.ts";

const gaussian = (count: number, seed: number) => fillGaussian(new Float32Array(count), seed);
const quantizer = (name: string) => quantizerFor(parseScheme(name));

/** A Hessian of inputs whose neighbours correlate by .9 and whose sizes differ. */
function correlatedHessian(columns: number): Float64Array {
  const size = (i: number) => 0.2 + ((i * 7) % 11);
  return Float64Array.from({ length: columns * columns }, (_, at) => {
    const [i, j] = [Math.floor(at / columns), at % columns];
    return Math.sqrt(size(i) * size(j)) * 0.9 ** Math.abs(i - j);
  });
}

function identity(columns: number): Float64Array {
  return Float64Array.from({ length: columns * columns }, (_, at) => (at % (columns + 1) === 0 ? 1 : 0));
}

/** LDLQ column block by column block in double precision, straight from the definition. */
function plainLdlq(
  quantizer_: Quantizer,
  weights: Float32Array,
  rows: number,
  columns: number,
  h: Float64Array,
) {
  const width = quantizer_.blockColumns;
  const { feedback } = factorHessian(h, columns, width);
  const scales = new Float32Array(rows).fill(1);
  const codes = new Uint8Array(quantizer_.codesByteLength(rows, columns));
  const errors = new Float64Array(rows * columns);
  for (let start = Math.floor((columns - 1) / width) * width; start >= 0; start -= width) {
    const count = Math.min(width, columns - start);
    const block = Float32Array.from({ length: rows * count }, (_, at) => {
      const [row, k] = [Math.floor(at / count), start + (at % count)];
      let value = weights[row * columns + k];
      for (let j = start + count; j < columns; j++) {
        value += errors[row * columns + j] * feedback[j * columns + k];
      }
      return value;
    });
    quantizer_.encodeColumns(block, rows, start, count, codes, columns);
    block.forEach((value, at) => {
      const place = Math.floor(at / count) * columns + start + (at % count);
      errors[place] = weights[place] - value;
    });
  }
  return { scheme: quantizer_.scheme.name, rows, columns, codes, scales };
}

describe("choleskyInPlace", () => {
  it.each([1, 5, 47, 48, 130])("multiplies back to the matrix, order %i", (n) => {
    const hessian = correlatedHessian(n);
    const factor = Float32Array.from(hessian);
    expect(choleskyInPlace(factor, n)).toBe(-1);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (let k = 0; k <= j; k++) sum += factor[i * n + k] * factor[j * n + k];
        expect(Math.abs(sum - hessian[i * n + j])).toBeLessThan(1e-5 * (1 + Math.abs(hessian[i * n + j])));
      }
    }
  });

  it("names the row that fails", () => {
    expect(choleskyInPlace(Float32Array.of(1, 0, 2, 1), 2)).toBe(1);
    expect(choleskyInPlace(Float32Array.of(Number.NaN), 1)).toBe(0);
  });
});

describe.each(["nuq-3", "vq-2.5", "uniform-4"])("LDLQ with %s", (name) => {
  const q = quantizer(name);

  it.each([
    [3, 17],
    [5, 33],
    [70, 300],
  ])("follows the definition, [%i, %i]", (rows, columns) => {
    const weights = gaussian(rows * columns, 2);
    const hessian = correlatedHessian(columns);
    const factor = factorHessian(hessian, columns, q.blockColumns);
    const scales = new Float32Array(rows).fill(1);
    const fast = q.decode(ldlq(q, weights, rows, columns, factor, { scales }));
    const plain = q.decode(plainLdlq(q, weights, rows, columns, hessian));
    // Sums in another order may tip a value over a threshold, and its row goes another way from there.
    let differing = 0;
    for (let i = 0; i < fast.length; i++) if (fast[i] !== plain[i]) differing++;
    expect(differing / fast.length).toBeLessThan(0.01);
    const loss = proxyLoss(weights, fast, hessian, rows, columns);
    expect(loss / proxyLoss(weights, plain, hessian, rows, columns)).toBeCloseTo(1, 2);
  });

  it("is plain rounding where the Hessian is diagonal", () => {
    const [rows, columns] = [4, 145];
    const weights = gaussian(rows * columns, 3);
    const factor = factorHessian(identity(columns), columns, q.blockColumns);
    expect(ldlq(q, weights, rows, columns, factor)).toEqual(q.encode(weights, rows, columns));
    const unused = factorHessian(new Float64Array(columns ** 2), columns, q.blockColumns);
    expect(ldlq(q, weights, rows, columns, unused)).toEqual(q.encode(weights, rows, columns));
  });

  it.each([false, true])(
    "loses far less than plain rounding on correlated inputs, order %s",
    (activationOrder) => {
      const [rows, columns] = [16, 258];
      const weights = gaussian(rows * columns, 4);
      const hessian = correlatedHessian(columns);
      const factor = factorHessian(hessian, columns, q.blockColumns, { activationOrder });
      const fed = q.decode(ldlq(q, weights, rows, columns, factor));
      const plain = q.decode(q.encode(weights, rows, columns));
      const loss = proxyLoss(weights, fed, hessian, rows, columns);
      expect(loss).toBeLessThan(0.5 * proxyLoss(weights, plain, hessian, rows, columns));
    },
  );
});

describe("factorHessian", () => {
  it("refuses what does not fit or is not positive definite", () => {
    expect(() => factorHessian(new Float64Array(9), 4, 1)).toThrow(UsageError);
    expect(() => factorHessian(Float64Array.of(1, 2, 2, 1), 2, 1)).toThrow(
      /not positive definite at column 1/,
    );
    const factor = factorHessian(identity(4), 4, 1);
    expect(() => ldlq(quantizer("vq-2"), gaussian(8, 1), 2, 4, factor)).toThrow(/blocks of 1.*vq-2/);
  });
});
