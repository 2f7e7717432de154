import type { ResidualMember, ResidualSource } from "../../backends/backend.ts";
import type { ChannelSelection } from "../../backends/operation.ts";
import { encodeResidual, type ResidualBits, residualRowBytes } from "../../quantizers/residual.ts";
import { randomWeights } from "../linear/cases.ts";
import { gaussian, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value: inputs have 16 bits, sums are exact. */
export const tolerance = 2e-5;

interface Shape {
  readonly tokens: number;
  readonly columns: number;
  /** Output channels of the weights that share the input. */
  readonly rows: readonly number[];
  readonly channels: number;
  readonly rotated?: boolean;
}

const shapes: readonly Shape[] = [
  { tokens: 1, columns: 1, rows: [1], channels: 1 },
  { tokens: 2, columns: 17, rows: [31], channels: 3 },
  { tokens: 5, columns: 33, rows: [17, 1], channels: 33 },
  { tokens: 1, columns: 576, rows: [576, 192, 191], channels: 18, rotated: true },
  { tokens: 3, columns: 1408, rows: [33], channels: 44 },
  { tokens: 33, columns: 136, rows: [65, 64], channels: 5, rotated: true },
  { tokens: 1, columns: 2050, rows: [130], channels: 300 },
];

type Rule = Exclude<ChannelSelection, { by: "energy" }> | { readonly by: "energy" };

const rules: readonly Rule[] = [
  { by: "magnitude" },
  { by: "buckets", largest: 3, usual: 1.8 },
  { by: "energy" },
  { by: "random", seed: 7 },
];

/** The residual of random weights, as a file holds it. */
export function randomResidual(
  rows: readonly number[],
  columns: number,
  bits: ResidualBits,
  seed: number,
): ResidualSource & { readonly bytes: Uint8Array } {
  const parts = rows.map((size, i) =>
    encodeResidual(gaussian(size * columns, seed + i, 0.1), size, columns, bits),
  );
  const offsets: number[] = [];
  let stride = 0;
  for (const size of rows) {
    offsets.push(stride);
    stride += residualRowBytes(size, bits);
  }
  const bytes = new Uint8Array(columns * stride);
  parts.forEach(({ codes }, i) => {
    const rowBytes = codes.length / columns;
    for (let column = 0; column < columns; column++) {
      bytes.set(codes.subarray(column * rowBytes, (column + 1) * rowBytes), column * stride + offsets[i]);
    }
  });
  const members = parts.map(
    ({ scales }, i): ResidualMember => ({ rows: rows[i], offset: offsets[i], scales }),
  );
  return { bits, columns, stride, members, bytes, read: async (target) => target.set(bytes) };
}

/** Every shape with every rule, on weights of a scheme. */
export function compensationCases(scheme: string, bits: ResidualBits): OperationCase[] {
  return shapes.flatMap((shape) => rules.map((rule) => compensationCase(scheme, bits, shape, rule)));
}

export function compensationCase(
  scheme: string,
  bits: ResidualBits,
  { tokens, columns, rows: sizes, channels, rotated }: Shape,
  rule: Rule,
  residual: ResidualSource = randomResidual(sizes, columns, bits, 70),
): OperationCase {
  const results = sizes.map((_, i) => `out${i}`);
  return {
    name: `${scheme} and ${bits} bits, ${tokens} x ${columns} -> ${sizes.join(" + ")}, ${channels} by ${rule.by}`,
    tokens,
    inputs: () => ({
      buffers: {
        input: { data: gaussian(tokens * columns, 50), perToken: columns },
        energies: { data: gaussian(columns, 51).map(Math.abs) },
        ...Object.fromEntries(
          sizes.map((size, i) => [`out${i}`, { data: new Float32Array(tokens * size), perToken: size }]),
        ),
      },
      weights: Object.fromEntries(
        sizes.map((size, i) => [
          `w${i}`,
          randomWeights(scheme, size, columns, 60 + i, rotated ? 30 : undefined),
        ]),
      ),
      residual,
    }),
    operation: (slots, weights, rows, handle) => ({
      op: "linear",
      input: slots.input,
      weights: sizes.map((_, i) => weights[`w${i}`]),
      biases: sizes.map(() => undefined),
      outputs: results.map((name) => slots[name]),
      rows,
      activations: "float",
      compensation: {
        residual: handle!,
        channels,
        selection: rule.by === "energy" ? { by: "energy", energies: slots.energies } : rule,
        outputs: results.map((name) => slots[name]),
      },
    }),
    results,
  };
}
