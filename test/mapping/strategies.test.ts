import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { QuantizedWeights } from "../../src/backends/backend.ts";
import { throughCodebook } from "../../src/mapping/partition.ts";
import { dprProduct } from "../../src/mapping/reference.ts";
import { GROUP, type IntegerPrecision, largestInteger } from "../../src/ops/linear/activations.ts";
import { randomWeights } from "../../src/ops/linear/cases.ts";
import { chooseStrategy } from "../../src/ops/linear/dispatch.ts";
import type { PackedLinear } from "../../src/ops/linear/packed.ts";
import type { StrategyName } from "../../src/ops/linear/policy.ts";
import { integers } from "../../src/ops/operationCase.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { codeTable } from "../../src/quantizers/codeTable.ts";
import { packedRowBytes, unpackCodes } from "../../src/quantizers/packing.ts";
import { parseScheme } from "../../src/quantizers/scheme.ts";

/** Which schemes each strategy multiplies, and the partition of weight bits that it stands for. */
const instances: Readonly<Record<Exclude<StrategyName, "float">, readonly string[]>> = {
  padding: ["uniform-2", "uniform-3", "uniform-4", "nuq-2", "nuq-3", "nuq-4"],
  "padding-decoded": [
    "uniform-2",
    "uniform-3",
    "uniform-4",
    "uniform-5",
    "uniform-7",
    "nuq-2",
    "nuq-3",
    "nuq-4",
  ],
  split: ["uniform-8"],
  table: ["uniform-2", "uniform-3", "uniform-4", "nuq-2"],
  bitwise: ["uniform-2", "uniform-3", "uniform-4", "nuq-2"],
};
const shapes = [
  { m: 1, n: 17, k: 16 },
  { m: 3, n: 33, k: 131 },
  { m: 2, n: 16, k: 576 },
  { m: 5, n: 31, k: 305 },
];

/** Twice the level of each code, an integer: uniform levels are halves. */
function operandOf({ scheme, codes, rows, columns }: QuantizedWeights) {
  const { values, bits } = codeTable(parseScheme(scheme))!;
  const all = new Uint8Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    const target = all.subarray(row * columns, (row + 1) * columns);
    unpackCodes(codes, bits, target, row * packedRowBytes(columns, bits));
  }
  return throughCodebook(
    all,
    values.map((value) => 2 * value),
  );
}

/** Integers of which every group has the largest: its scale is 1, and rounding leaves them as they are. */
function activationsOf(m: number, k: number, largest: number): Float32Array {
  const drawn = integers(m * k, 2 * largest + 1, 5);
  return Float32Array.from(drawn, (value, i) => ((i % k) % GROUP === 0 ? largest : value - largest));
}

describe.each(["relaxed", "plain"] as const)("strategies on wasm, %s SIMD", (simd) => {
  let forced: StrategyName = "padding";
  let backend: Awaited<ReturnType<typeof openWasm>>;
  beforeAll(async () => {
    backend = await openWasm({ simd, policy: () => forced });
  });
  afterAll(() => backend.dispose());

  const cases = Object.entries(instances).flatMap(([name, schemes]) =>
    (["int8", "int4"] as const).map((precision) => [name as StrategyName, precision, schemes] as const),
  );
  it.each(cases)(
    "%s with %s activations is the reference to the last integer",
    async (name, precision, schemes) => {
      forced = name;
      for (const scheme of schemes) {
        for (const { m, n, k } of shapes) await compare(scheme, precision, m, n, k);
      }
    },
  );

  async function compare(scheme: string, precision: IntegerPrecision, m: number, n: number, k: number) {
    const drawn = randomWeights(scheme, n, k, 60) as QuantizedWeights;
    const weights = { ...drawn, scales: new Float32Array(n).fill(1) };
    const handle = (await backend.loadLinear(weights)) as PackedLinear;
    expect(chooseStrategy(handle, precision, m, () => forced).name).toBe(forced);
    const x = activationsOf(m, k, largestInteger[precision]);
    const [input, out] = [backend.allocate(x.byteLength), backend.allocate(m * n * 4)];
    backend.upload(input, x);
    const program = backend.record([
      {
        ...{ op: "linear", input, weights: [handle], biases: [undefined], outputs: [out] },
        ...{ rows: m, activations: precision },
      },
    ]);
    backend.runNow(program);
    const y = await backend.readFloats(out, m * n);
    const bits = precision === "int8" ? 8 : 4;
    const w = operandOf(weights);
    const partitions = { weights: [w.bits], activations: [bits] };
    const expected = dprProduct({ values: x, bits, signed: true }, w, partitions, { m, n, k });
    expect(Array.from(y, (value) => 2 * value)).toEqual([...expected]);
    program.free();
    backend.freeLinear(handle);
    for (const slot of [input, out]) backend.free(slot);
  }
});

describe("the dispatcher", () => {
  it("names every strategy it tried and why it declined", () => {
    const weight = { scheme: "nuq-4", rows: 3, columns: 5, packing: "pebbles" } as unknown as PackedLinear;
    expect(() => chooseStrategy(weight, "int8", 2)).toThrow(
      /no strategy multiplies \[2, 5\] by nuq-4 weights \[3, 5\] \(table: .*padding: .*split: .*bitwise: .*float: unknown packing pebbles\)/,
    );
  });
});
