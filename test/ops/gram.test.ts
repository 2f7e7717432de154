import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { spawnNodeWorker } from "../../src/backends/wasm/workers.node.ts";
import { cases, tolerance } from "../../src/ops/gram/cases.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { relativeError } from "../relativeError.ts";
import { runCase } from "./runCase.ts";

// Sums over tokens depend on how they are cut into steps, so the rule "one token alone gives the same bits" of
// the other operations does not hold here.
describe.each(["relaxed", "plain"] as const)("gram on wasm, %s SIMD", (simd) => {
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
    async (_, operationCase) => {
      const { sums } = await runCase(one, operationCase);
      const wanted = await runCase(new ReferenceBackend(), operationCase);
      expect(relativeError(sums, wanted.sums)).toBeLessThanOrEqual(tolerance);
      expect((await runCase(two, operationCase)).sums, "two threads").toEqual(sums);
    },
  );
});
