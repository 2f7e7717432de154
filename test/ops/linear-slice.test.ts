import { expect, it } from "vitest";
import { randomWeights } from "../../src/ops/linear/cases.ts";
import { gaussian } from "../../src/ops/operationCase.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { allSchemes } from "../../src/quantizers/scheme.ts";

const [ROWS, COLUMNS, FIRST, COUNT] = [53, 136, 16, 37];
const schemes = allSchemes().filter(({ name }) => name !== "bf16");

it("rows of loaded weights multiply as the whole does, whatever the scheme", async () => {
  const backend = await openWasm();
  for (const tokens of [1, 3]) {
    const input = backend.allocate(tokens * COLUMNS * 4);
    backend.upload(input, gaussian(tokens * COLUMNS, 5));
    const run = async (handle: Parameters<typeof backend.freeLinear>[0]) => {
      const output = backend.allocate(tokens * handle.rows * 4);
      const program = backend.record([
        {
          ...{ op: "linear", input, weights: [handle], biases: [undefined], outputs: [output] },
          ...{ rows: tokens, activations: "int8" },
        },
      ]);
      await backend.run(program);
      const values = await backend.readFloats(output, tokens * handle.rows);
      program.free();
      backend.free(output);
      return values;
    };
    for (const { name } of schemes) {
      const whole = await backend.loadLinear(randomWeights(name, ROWS, COLUMNS, 3));
      const slice = backend.sliceLinear(whole, FIRST, COUNT);
      const [all, part] = [await run(whole), await run(slice)];
      const expected = Array.from({ length: tokens }, (_, t) =>
        Array.from(all.subarray(t * ROWS + FIRST, t * ROWS + FIRST + COUNT)),
      ).flat();
      expect({ name, values: [...part] }).toEqual({ name, values: expected });
      const before = backend.bytesAllocated;
      backend.freeLinear(slice);
      expect(backend.bytesAllocated).toBe(before);
      backend.freeLinear(whole);
      expect(() => backend.sliceLinear(whole, 8, 16)).toThrow(RangeError);
    }
  }
  backend.dispose();
});
