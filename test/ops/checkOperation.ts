import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { spawnNodeWorker } from "../../src/backends/wasm/workers.node.ts";
import type { OperationCase } from "../../src/ops/operationCase.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { relativeError } from "../relativeError.ts";
import { runCase } from "./runCase.ts";

const backends = {
  "wasm, relaxed SIMD": "relaxed",
  "wasm, plain SIMD": "plain",
} as const;

export interface Check {
  readonly cases: readonly OperationCase[];
  readonly tolerance: number | ((operationCase: OperationCase) => number);
}

/**
 * Every case on every build of the kernels: near the reference, bit for bit the same on two threads and when
 * each token is computed alone.
 */
export function checkOperation(operation: string, { cases, tolerance }: Check): void {
  const reference = new ReferenceBackend();
  const limit = typeof tolerance === "number" ? () => tolerance : tolerance;

  describe.each(Object.entries(backends))(`${operation} on %s`, (_, simd) => {
    let one: Backend;
    let two: Backend;
    beforeAll(async () => {
      one = await openWasm({ simd });
      two = await openWasm({ threads: 2, spawn: spawnNodeWorker, simd });
    });
    afterAll(() => {
      one.dispose();
      two.dispose();
    });

    it.each(cases.map((operationCase) => [operationCase.name, operationCase] as const))(
      "%s",
      async (_name, operationCase) => {
        const whole = await runCase(one, operationCase);
        const wanted = await runCase(reference, operationCase);
        for (const name of operationCase.results) {
          expect(relativeError(whole[name], wanted[name]), name).toBeLessThanOrEqual(limit(operationCase));
        }
        expect(await runCase(two, operationCase), "two threads").toEqual(whole);
        expect(await runCase(one, operationCase, true), "one token at a time").toEqual(whole);
      },
    );

    it("frees what it allocated", async () => {
      await runCase(one, cases[0]);
      const before = one.bytesAllocated;
      await runCase(one, cases[0]);
      expect(one.bytesAllocated).toBe(before);
    });
  });
}
