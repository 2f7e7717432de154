/**
 * The names of the palette: `nuq-3`, `vq-2.5`, `tcq-3.25`, `tcq-s-3`, `uniform-4`, `bf16`.
 *
 * @module
 */
import { UsageError } from "../errors.ts";

export type Family = "uniform" | "nuq" | "vq" | "tcq" | "tcq-s" | "float";

/** How a linear layer's weights are stored. */
export interface Scheme {
  /** Canonical, e.g. `tcq-3.25`. */
  readonly name: string;
  readonly family: Family;
  /** Bits per weight, scales not counted. */
  readonly bits: number;
}

interface Range {
  readonly family: Exclude<Family, "float">;
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** Bit widths of each family. The quarter steps of TCQ are half-TCQ, a mix of the two neighbouring rates. */
const ranges: readonly Range[] = [
  { family: "uniform", from: 2, to: 8, step: 1 },
  { family: "nuq", from: 2, to: 8, step: 1 },
  { family: "vq", from: 1.5, to: 6, step: 0.5 },
  { family: "tcq", from: 1.5, to: 5, step: 0.25 },
  { family: "tcq-s", from: 1.5, to: 5, step: 0.25 },
];

const floats: Readonly<Record<string, number>> = { f32: 32, f16: 16, bf16: 16 };

/** Every scheme of the palette, floats last. */
export function allSchemes(): Scheme[] {
  const quantized = ranges.flatMap(({ family, from, to, step }) =>
    Array.from({ length: (to - from) / step + 1 }, (_, i) => scheme(family, from + i * step)),
  );
  const float = Object.entries(floats).map(([name, bits]): Scheme => ({ name, family: "float", bits }));
  return [...quantized, ...float];
}

/**
 * Parses a scheme's name. Throws a UsageError that lists what is possible.
 *
 * @example parseScheme("tcq-3.25") // { name: "tcq-3.25", family: "tcq", bits: 3.25 }
 */
export function parseScheme(name: string): Scheme {
  if (Object.hasOwn(floats, name)) return { name, family: "float", bits: floats[name] };
  const match = /^([a-z0-9-]+)-(\d+(?:\.\d+)?)$/.exec(name);
  const range = ranges.find(({ family }) => family === (match ? match[1] : name));
  if (!range) {
    const known = [...ranges.map((r) => `${r.family}-B with B ${describe(r)}`), ...Object.keys(floats)];
    throw new UsageError(`unknown scheme "${name}"; choose one of: ${known.join("; ")}`);
  }
  const bits = Number(match?.[2]);
  if (!(bits >= range.from && bits <= range.to && Number.isInteger(bits / range.step))) {
    const problem = match ? `scheme "${name}" does not exist` : `scheme "${name}" lacks its bits`;
    const example = `${range.family}-${range.from}`;
    throw new UsageError(`${problem}; ${range.family} takes ${describe(range)} bits, e.g. "${example}"`);
  }
  return scheme(range.family, bits);
}

function scheme(family: Family, bits: number): Scheme {
  return { name: `${family}-${bits}`, family, bits };
}

function describe({ from, to, step }: Range): string {
  return step === 1 ? `${from} to ${to}` : `${from} to ${to} in steps of ${step}`;
}
