import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import { MemoryError } from "../../../src/errors.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openModel } from "./scattered.ts";

vi.mock("../../../src/ops/wasm.ts", () => ({
  openWasm: async () => ({
    loadLinear: () => {
      throw new MemoryError("out of memory");
    },
    dispose: () => {},
  }),
}));

it("is left out where the float model does not fit into memory, unless it was asked for", async () => {
  const checkpoint = await openModel("llama-linear");
  const quantize = (balance?: boolean) =>
    quantizeCheckpoint(checkpoint, join(temporaryFolder(), "model"), {
      scheme: "nuq-4",
      balance,
      threads: 1,
    });
  expect(await quantize()).toMatchObject({ balanced: false });
  await expect(quantize(true)).rejects.toThrow(MemoryError);
  await checkpoint.close();
});
