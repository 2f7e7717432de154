import type { LinearWeights } from "../../backends/backend.ts";
import type { ActivationPrecision } from "../../backends/operation.ts";
import { fromFloat32, toFloat32 } from "../../checkpoint/dtype.ts";
import { rotationFor } from "../../quantizers/hadamard/rotation.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { gaussian, integers, type OperationCase } from "../operationCase.ts";

/** Largest difference from the reference, relative to the largest value, when activations are floats. */
export const tolerance = 5e-6;

/** Schemes that every backend multiplies. */
export const schemes = [
  ...["f32", "f16", "nuq-2", "nuq-3", "nuq-4", "nuq-5", "nuq-6", "nuq-7", "nuq-8"],
  ...["uniform-2", "uniform-3", "uniform-4", "uniform-5", "uniform-8"],
];

interface Shape {
  readonly tokens: number;
  readonly columns: number;
  /** Output channels of each of the weights that share the input. */
  readonly rows: readonly number[];
  readonly bias?: boolean;
  /** Quantized weights expect a rotated input. */
  readonly rotated?: boolean;
}

const shapes: readonly Shape[] = [
  { tokens: 1, columns: 1, rows: [1] },
  { tokens: 2, columns: 17, rows: [1], bias: true },
  { tokens: 3, columns: 31, rows: [17], rotated: true },
  { tokens: 4, columns: 33, rows: [31, 33], bias: true },
  { tokens: 5, columns: 128, rows: [16, 17] },
  { tokens: 7, columns: 129, rows: [48] },
  { tokens: 8, columns: 256, rows: [100], rotated: true },
  { tokens: 1, columns: 576, rows: [100, 31, 1], bias: true, rotated: true },
  { tokens: 33, columns: 576, rows: [31] },
  { tokens: 64, columns: 136, rows: [33], rotated: true },
  { tokens: 1, columns: 1408, rows: [33] },
  { tokens: 2, columns: 18944, rows: [5], rotated: true },
];

/** Random weights [rows, columns] of any scheme: codes and scales drawn, not fitted. Float ones are never rotated. */
export function randomWeights(
  scheme: string,
  rows: number,
  columns: number,
  seed: number,
  rotationSeed?: number,
): LinearWeights {
  if (scheme === "f32" || scheme === "f16") {
    const drawn = gaussian(rows * columns, seed);
    const values = scheme === "f32" ? drawn : new Float32Array(drawn.length);
    // Values that halfs hold exactly: how they are rounded is a matter of loading.
    if (scheme === "f16") toFloat32("F16", fromFloat32("F16", drawn), values);
    const readRows = async (start: number, end: number) => values.subarray(start * columns, end * columns);
    return { scheme, rows, columns, readRows };
  }
  const byteLength = quantizerFor(parseScheme(scheme)).codesByteLength(rows, columns);
  return {
    scheme,
    rows,
    columns,
    codes: Uint8Array.from(integers(byteLength, 256, seed)),
    scales: gaussian(rows, seed + 1).map((value) => 0.01 + Math.abs(value)),
    rotation: rotationSeed === undefined ? undefined : rotationFor(columns, rotationSeed),
  };
}

/** The cases of one scheme. */
export function linearCases(scheme: string, activations: ActivationPrecision): OperationCase[] {
  return shapes.map((shape) => {
    const rows = shape.rows.join(" + ");
    const { tokens, columns, rotated } = shape;
    const name = `${scheme}, ${activations} activations, ${tokens} x ${columns} -> ${rows}${rotated ? ", rotated" : ""}`;
    return linearCase(
      name,
      shape,
      shape.rows.map(() => scheme),
      shape.rows.map(() => (rotated ? 30 : undefined)),
      activations,
    );
  });
}

/** Weights of several schemes that share an input, with one rotation, none, or several. */
export function mixedCases(activations: ActivationPrecision): OperationCase[] {
  const groups = [
    { mixed: ["nuq-4", "nuq-6", "uniform-8", "nuq-2"], rotations: [30, 30, 30, 30] },
    { mixed: ["f32", "nuq-3", "f16", "uniform-5"], rotations: [] },
    { mixed: ["nuq-4", "uniform-8", "nuq-3", "nuq-4"], rotations: [30, 31, undefined, 30] },
    { mixed: ["uniform-8", "f32", "nuq-5", "nuq-4"], rotations: [undefined, undefined, 31, 30] },
  ];
  return groups.flatMap(({ mixed, rotations }) =>
    [1, 5].map((tokens) => {
      const schemesOfWeights = mixed.map((scheme, i) =>
        rotations[i] ? `${scheme} rotated ${rotations[i]}` : scheme,
      );
      const name = `${schemesOfWeights.join(" + ")}, ${activations} activations, ${tokens} tokens`;
      const shape = { tokens, columns: 576, rows: [100, 31, 48, 64], bias: true };
      return linearCase(name, shape, mixed, rotations, activations);
    }),
  );
}

function linearCase(
  name: string,
  { tokens, columns, rows: sizes, bias }: Shape,
  schemesOfWeights: readonly string[],
  rotations: readonly (number | undefined)[],
  activations: ActivationPrecision,
): OperationCase {
  const outputs = sizes.map((_, i) => `out${i}`);
  return {
    name,
    tokens,
    inputs: () => ({
      buffers: {
        input: { data: gaussian(tokens * columns, 20), perToken: columns },
        ...Object.fromEntries(
          sizes.flatMap((size, i) => [
            [`out${i}`, { data: new Float32Array(tokens * size), perToken: size }],
            ...(bias && i % 2 === 0 ? [[`bias${i}`, { data: gaussian(size, 21 + i) }]] : []),
          ]),
        ),
      },
      weights: Object.fromEntries(
        sizes.map((size, i) => [
          `w${i}`,
          randomWeights(schemesOfWeights[i], size, columns, 30, rotations[i]),
        ]),
      ),
    }),
    operation: (slots, weights, rows) => ({
      op: "linear",
      input: slots.input,
      weights: sizes.map((_, i) => weights[`w${i}`]),
      biases: sizes.map((_, i) => slots[`bias${i}`]),
      outputs: outputs.map((output) => slots[output]),
      rows,
      activations,
    }),
    results: outputs,
  };
}
