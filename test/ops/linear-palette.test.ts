import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LinearWeights } from "../../src/backends/backend.ts";
import type { ActivationPrecision } from "../../src/backends/operation.ts";
import { spawnNodeWorker } from "../../src/backends/wasm/workers.node.ts";
import { roundActivations } from "../../src/ops/linear/activations.ts";
import { randomWeights } from "../../src/ops/linear/cases.ts";
import { linear } from "../../src/ops/linear/reference.ts";
import { gaussian, type OperationCase } from "../../src/ops/operationCase.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { quantizerFor } from "../../src/quantizers/registry.ts";
import { allSchemes } from "../../src/quantizers/scheme.ts";
import { relativeError } from "../relativeError.ts";
import { runCase } from "./runCase.ts";

/** Largest difference from the decoded weights' product, relative to the largest value; measured at most 9e-7. */
const tolerance = 1e-5;

/** Columns that cut tiles of 16, groups of 128 and half-TCQ's change of rate in every way. */
const shapes = [
  { rows: 1, columns: 1 },
  { rows: 17, columns: 31 },
  { rows: 33, columns: 136 },
  { rows: 48, columns: 305 },
];
const tokenCounts = [1, 2, 3, 8, 17];

const schemes = allSchemes().filter(({ family }) => family !== "float");

function productCase(
  weight: LinearWeights,
  x: Float32Array,
  tokens: number,
  activations: ActivationPrecision,
): OperationCase {
  const { rows, columns } = weight;
  return {
    name: weight.scheme,
    tokens,
    inputs: () => ({
      buffers: {
        x: { data: x, perToken: columns },
        y: { data: new Float32Array(tokens * rows), perToken: rows },
      },
      weights: { weight },
    }),
    operation: (slots, weights, count) => ({
      ...{ op: "linear", input: slots.x, weights: [weights.weight], biases: [undefined], outputs: [slots.y] },
      ...{ rows: count, activations },
    }),
    results: ["y"],
  };
}

describe.each(["relaxed", "plain"] as const)("the palette's products, %s SIMD", (simd) => {
  let one: Awaited<ReturnType<typeof openWasm>>;
  let two: typeof one;
  beforeAll(async () => {
    one = await openWasm({ simd });
    two = await openWasm({ simd, threads: 2, spawn: spawnNodeWorker });
  });
  afterAll(() => {
    one.dispose();
    two.dispose();
  });

  it.each(schemes.map((scheme) => [scheme.name, scheme] as const))("%s", async (name, scheme) => {
    const most = Math.max(...tokenCounts);
    for (const { rows, columns } of shapes) {
      const weight = randomWeights(name, rows, columns, 70);
      if ("readRows" in weight) throw new Error("quantized weights were expected");
      const decoded = quantizerFor(scheme).decode(weight);
      const all = gaussian(most * columns, 71);
      for (const activations of ["float", "int16", "int8", "int4"] as const) {
        const read = activations === "float" ? all : roundActivations(all, columns, activations);
        const expected = new Float32Array(most * rows);
        linear(read, decoded, undefined, expected, most, rows, columns);
        let whole: Float32Array | undefined;
        for (const tokens of tokenCounts.toReversed()) {
          const shape = `${activations} activations, ${tokens} x ${columns} -> ${rows}`;
          const operationCase = productCase(weight, all.subarray(0, tokens * columns), tokens, activations);
          const { y } = await runCase(one, operationCase);
          whole ??= y;
          expect(relativeError(y, expected.subarray(0, y.length)), shape).toBeLessThan(tolerance);
          // The first rows, bit for bit, of the largest batch.
          expect(y, `${shape}: batch`).toEqual(whole.subarray(0, y.length));
          if (tokens !== 1 && tokens !== most) continue;
          expect((await runCase(two, operationCase)).y, `${shape}: two threads`).toEqual(y);
        }
      }
    }
  });

  it.each(schemes.map((scheme) => [scheme.name, scheme] as const))(
    "%s as an embedding",
    async (name, scheme) => {
      const [rows, columns] = [33, 305];
      const table = randomWeights(name, rows, columns, 72);
      if ("readRows" in table) throw new Error("quantized weights were expected");
      const ids = Int32Array.from([32, 0, 15, 16, 31]);
      const { out } = await runCase(one, {
        name,
        tokens: ids.length,
        inputs: () => ({
          buffers: {
            ids: { data: ids, perToken: 1 },
            out: { data: new Float32Array(ids.length * columns), perToken: columns },
          },
          weights: { table },
        }),
        operation: (slots, weights, count) => ({
          ...{ op: "embed", table: weights.table, ids: slots.ids, out: slots.out, rows: count, scale: 1 },
        }),
        results: ["out"],
      });
      const decoded = quantizerFor(scheme).decode(table);
      for (const [i, id] of ids.entries()) {
        const row = out.subarray(i * columns, (i + 1) * columns);
        expect(relativeError(row, decoded.subarray(id * columns, (id + 1) * columns))).toBeLessThan(5e-7);
      }
    },
  );
});
