import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { QuantizeRun } from "../../../src/engine/quantize/run.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { few, quantizedBytes } from "./checkpointBytes.ts";

describe("quantizeCheckpoint", () => {
  it.each([
    ["llama-linear", "nuq-3", true],
    ["qwen2-bf16", "tcq-s-3", false],
    // Its queries, keys and values are rows of one tensor.
    ["phi3-partial", "vq-2.5", true],
  ] as const)("%s, %s: the same bytes at any thread count", async (model, scheme, sequential) => {
    const folder = temporaryFolder();
    for (const calibrate of [undefined, { ids: few, sequential }]) {
      const make = (threads: number) =>
        quantizedBytes(model, join(folder, `${threads} ${!calibrate}`), { scheme, calibrate, threads });
      const one = await make(1);
      expect((await make(3)).equals(one)).toBe(true);
    }
  });

  it("calibrates in the original basis, and with activation order", async () => {
    const folder = temporaryFolder();
    const options: QuantizeRun = { scheme: "nuq-3", rotate: false };
    const plain = await quantizedBytes("llama-linear", join(folder, "a"), {
      ...options,
      calibrate: { ids: few, activationOrder: false },
    });
    const calibrate = { ids: few, activationOrder: true };
    const ordered = await quantizedBytes("llama-linear", join(folder, "b"), { ...options, calibrate });
    expect(ordered.equals(plain)).toBe(false);
  });

  it("reports every weight once, phases among them", async () => {
    const seen: string[] = [];
    let [done, total] = [0, 0];
    await quantizedBytes("llama-linear", join(temporaryFolder(), "a"), {
      scheme: "nuq-3",
      calibrate: { ids: few },
      onProgress: (progress) => {
        expect(progress.done).toBeGreaterThanOrEqual(done);
        ({ done, total } = progress);
        seen.push(progress.phase);
      },
    });
    expect(done).toBe(total);
    expect(new Set(seen)).toEqual(new Set(["round", "gradients", "observe", "advance"]));
  });

  it("needs a tokenizer for texts", async () => {
    const folder = join(temporaryFolder(), "a");
    const run = { scheme: "nuq-3", calibrate: { texts: ["a text"] } };
    await expect(quantizedBytes("llama-linear", folder, run)).rejects.toThrow(/has no tokenizer/);
    expect(existsSync(`${folder}.partial`)).toBe(false);
  });
});
