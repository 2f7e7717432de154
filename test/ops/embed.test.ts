import { expect, it } from "vitest";
import type { QuantizedWeights } from "../../src/backends/backend.ts";
import { fromFloat32, toFloat32 } from "../../src/checkpoint/dtype.ts";
import { cases, tolerance } from "../../src/ops/embed/cases.ts";
import { randomWeights, schemes } from "../../src/ops/linear/cases.ts";
import { gaussian, type OperationCase } from "../../src/ops/operationCase.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { quantizerFor } from "../../src/quantizers/registry.ts";
import { parseScheme } from "../../src/quantizers/scheme.ts";
import { checkOperation } from "./checkOperation.ts";
import { runCase } from "./runCase.ts";

checkOperation("embed", { cases, tolerance });

/** Reads every row of a table. */
function wholeTable(table: ReturnType<typeof randomWeights>): OperationCase {
  const { rows, columns } = table;
  return {
    name: "whole table",
    tokens: rows,
    inputs: () => ({
      buffers: {
        ids: { data: Int32Array.from({ length: rows }, (_, i) => i), perToken: 1 },
        out: { data: new Float32Array(rows * columns), perToken: columns },
      },
      weights: { table },
    }),
    operation: ({ ids, out }, handles, count) => ({
      ...{ op: "embed", table: handles.table, ids, out, rows: count, scale: 1 },
    }),
    results: ["out"],
  };
}

const packed = schemes.filter((scheme) => !scheme.startsWith("f"));

it.each(packed)("repacked %s weights read back bit for bit as the quantizer decodes them", async (scheme) => {
  const backend = await openWasm();
  for (const [rows, columns] of [
    [1, 1],
    [17, 31],
    [33, 136],
    [48, 577],
  ]) {
    const table = randomWeights(scheme, rows, columns, 60) as QuantizedWeights;
    const { out } = await runCase(backend, wholeTable(table));
    expect(out).toEqual(quantizerFor(parseScheme(scheme)).decode(table));
  }
  backend.dispose();
});

it("rounds float weights to halfs, ties to even, subnormals included", async () => {
  const backend = await openWasm();
  const limits = [0, 6e-8, 3e-8, 2.9e-8, 6.1e-5, 1 + 2 ** -11, 1 + 3 * 2 ** -11, -65504, 65519];
  const values = Float32Array.from([...limits, ...gaussian(1000, 61), ...gaussian(1000, 62, 1e-6)]);
  const table = {
    ...({ scheme: "f16", rows: 1, columns: values.length } as const),
    readRows: async () => values,
  };
  const { out } = await runCase(backend, wholeTable(table));
  const expected = new Float32Array(values.length);
  toFloat32("F16", fromFloat32("F16", values), expected);
  expect(out).toEqual(expected);
  backend.dispose();
});
