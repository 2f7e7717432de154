/**
 * Lattice quantizers of eight weights at a time, made for CPUs: one small look-up for eight weights.
 *
 * @module
 */
import { UsageError } from "../../errors.ts";
import type { Quantizer } from "../quantizer.ts";
import { encodeMatrix, rootMeanSquare } from "../quantizer.ts";
import type { Scheme } from "../scheme.ts";
import type { Nearest } from "./lattice.ts";
import { e8pPoints, e8pSearch, latticeSide, listSearch, rootPoints } from "./lattice.ts";

/** One of the codes that add up to eight weights. */
export interface LatticeStage {
  /** Bytes of its code, little-endian. */
  readonly bytes: 1 | 2;
  /** What a lattice step of 1 stands for, in standard deviations of a row. */
  readonly unit: number;
}

/** By bits: E8P, then for 3 bits the roots and for 4 bits E8P again, on what remains. Units by least distortion. */
const stagesByBits: Readonly<Record<number, readonly LatticeStage[]>> = {
  2: [{ bytes: 2, unit: 0.97 }],
  3: [
    { bytes: 2, unit: 1 },
    { bytes: 1, unit: 0.5 },
  ],
  4: [
    { bytes: 2, unit: 1.12 },
    { bytes: 2, unit: 0.28 },
  ],
};

/** The stages of a scheme, in the order of their codes. */
export function latticeStages(scheme: Scheme): readonly LatticeStage[] {
  const stages = scheme.family === "e8" ? stagesByBits[scheme.bits] : undefined;
  if (!stages) throw new UsageError(`${scheme.name} is no lattice scheme; choose e8-2, e8-3 or e8-4`);
  return stages;
}

/**
 * The quantizer of an `e8` scheme. Codes lie row-major, for every eight columns (the last padded with zeros) the
 * stages' codes in turn; a row's scale is its root mean square.
 */
export function e8Quantizer(
  scheme: Scheme,
  stages: readonly LatticeStage[] = latticeStages(scheme),
): Quantizer {
  const codeBytes = stages.reduce((sum, { bytes }) => sum + bytes, 0);
  const points = stages.map(({ bytes }) => (bytes === 2 ? e8pPoints() : rootPoints()));
  let searches: Nearest[] | undefined;
  const quantizer: Omit<Quantizer, "encode" | "decode"> = {
    scheme,
    blockColumns: latticeSide,
    blockRows: 1,
    codesByteLength: (rows, columns) => rows * Math.ceil(columns / latticeSide) * codeBytes,
    scaleOf: (row) => rootMeanSquare(row) || 1,
    encodeColumns(values, rows, column, width, codes, columns) {
      searches ??= stages.map(({ bytes, unit }, i) =>
        bytes === 2 ? e8pSearch(unit) : listSearch(points[i], unit),
      );
      const rowBytes = quantizer.codesByteLength(1, columns);
      const rest = new Float32Array(latticeSide);
      for (let row = 0; row < rows; row++) {
        for (let first = 0; first < width; first += latticeSide) {
          const from = row * width + first;
          const count = Math.min(latticeSide, width - first);
          const original = values.subarray(from, from + count);
          rest.fill(0).set(original);
          let place = row * rowBytes + ((column + first) / latticeSide) * codeBytes;
          original.fill(0);
          for (const [stage, { bytes, unit }] of stages.entries()) {
            const code = searches[stage](rest, 0);
            for (let i = 0; i < latticeSide; i++) {
              const value = (points[stage][code * latticeSide + i] * unit) / 4;
              rest[i] -= value;
              if (i < count) original[i] += value;
            }
            codes[place++] = code;
            if (bytes === 2) codes[place++] = code >> 8;
          }
        }
      }
    },
  };
  return {
    ...quantizer,
    encode: (weights, rows, columns, options) => encodeMatrix(quantizer, weights, rows, columns, options),
    decode({ rows, columns, codes, scales }, start = 0, end = rows) {
      const weights = new Float32Array((end - start) * columns);
      const rowBytes = quantizer.codesByteLength(1, columns);
      for (let row = start; row < end; row++) {
        let place = row * rowBytes;
        for (let first = 0; first < columns; first += latticeSide) {
          const to = (row - start) * columns + first;
          const count = Math.min(latticeSide, columns - first);
          for (const [stage, { bytes, unit }] of stages.entries()) {
            const code = bytes === 2 ? codes[place] | (codes[place + 1] << 8) : codes[place];
            place += bytes;
            const at = code * latticeSide;
            const factor = unit / 4;
            for (let i = 0; i < count; i++) weights[to + i] += points[stage][at + i] * factor;
          }
        }
        const scale = scales[row];
        for (let i = (row - start) * columns, last = i + columns; i < last; i++) weights[i] *= scale;
      }
      return weights;
    },
  };
}
