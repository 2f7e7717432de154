import { expect, it } from "vitest";
import { openCheckpoint } from "../../../src/checkpoint/open.node.ts";
import { calibrationGains } from "../../../src/engine/planning/gains.node.ts";
import { ids } from "../quantize/checkpointBytes.ts";

it("says of every layer what calibration leaves of its loss", async () => {
  const checkpoint = await openCheckpoint("test/fixtures/models/llama-linear");
  const gains = await calibrationGains(checkpoint, { sequences: ids, threads: 1 });
  const names = [...checkpoint.tensors.keys()].filter((name) => /_proj\.weight$/.test(name));
  expect([...gains.keys()].sort()).toEqual(names.sort());
  for (const gain of gains.values()) {
    expect(gain).toBeGreaterThan(0);
    expect(gain).toBeLessThanOrEqual(1);
  }
  const qkv = names.filter((name) => /layers\.0\..*[qkv]_proj/.test(name)).map((name) => gains.get(name));
  expect(new Set(qkv).size).toBe(1);
});
