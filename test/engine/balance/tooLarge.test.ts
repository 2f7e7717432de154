import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import { MemoryError } from "../../../src/errors.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture } from "../../models/fixture.ts";

vi.mock("../../../src/ops/wasm.ts", () => ({
  openWasm: async () => ({
    loadLinear: () => {
      throw new MemoryError("out of memory");
    },
    dispose: () => {},
  }),
}));

const free = vi.hoisted(() => ({ bytes: Number.POSITIVE_INFINITY }));
vi.mock("../../../src/engine/availableMemory.ts", () => ({ availableMemory: () => free.bytes }));

it.each([
  [Number.POSITIVE_INFINITY, /not balanced.*whole float model in memory \(out of memory\); give a text/],
  [1000, /not balanced.*\(0.\d GB do not fit into 0.0 GB of memory\); give a text/],
])(
  "is left out where the float model does not fit into memory, unless it was asked for",
  async (bytes, told) => {
    free.bytes = bytes;
    const checkpoint = await openFixture("llama-linear");
    const notices: string[] = [];
    const quantize = (balance?: boolean) =>
      quantizeCheckpoint(checkpoint, join(temporaryFolder(), "model"), {
        scheme: "nuq-4",
        balance,
        threads: 1,
        onNotice: (notice) => notices.push(notice),
      });
    expect(await quantize()).toMatchObject({ balanced: false });
    expect(notices).toEqual([expect.stringMatching(told)]);
    await expect(quantize(true)).rejects.toThrow(MemoryError);
  },
);
