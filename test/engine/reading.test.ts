import { expect, it } from "vitest";
import type { Reading } from "../../src/engine/reading.ts";
import { ReferenceBackend } from "../../src/ops/reference.ts";
import { openWasm } from "../../src/ops/wasm.ts";
import { relativeError } from "../relativeError.ts";
import { loadQuantized } from "./quantizedFixture.ts";

const ids = Int32Array.from({ length: 6 }, (_, i) => (i * 31 + 5) % 96);
const positions = ids.map((_, i) => i);
const readings: readonly Reading[] = [
  { activations: "float" },
  { activations: "int8" },
  { activations: "int4" },
  { activations: "int16" },
];

it("steps of one runner read the model as each says, each as a runner of that reading alone", async () => {
  const mixed = await loadQuantized("llama3-v5", await openWasm(), {
    sequences: 1,
    chunk: 8,
    reading: readings[0],
  });
  const logits: Float32Array[] = [];
  for (const reading of [...readings, ...readings]) {
    logits.push(await mixed.step({ ids, positions }, "all", reading));
  }
  expect(await mixed.step({ ids, positions }, "all")).toEqual(logits[0]);
  for (const [i, reading] of readings.entries()) {
    expect(logits[i + readings.length]).toEqual(logits[i]);
    const options = { sequences: 1, chunk: 8, reading };
    const alone = await loadQuantized("llama3-v5", await openWasm(), options);
    expect(await alone.step({ ids, positions }, "all")).toEqual(logits[i]);
    const plain = await loadQuantized("llama3-v5", new ReferenceBackend(), options);
    const difference = relativeError(await plain.step({ ids, positions }, "all"), logits[i]);
    // Where an activation lies between two integers, the backends may round it differently.
    expect(difference).toBeLessThan(
      { float: 1e-5, int16: 2e-4, int8: 2e-3, int4: 4e-2 }[reading.activations],
    );
  }
  expect(relativeError(logits[1], logits[0])).toBeLessThan(0.05);
  expect(relativeError(logits[3], logits[0])).toBeLessThan(relativeError(logits[1], logits[0]) / 50);
  expect(relativeError(logits[2], logits[0])).toBeGreaterThan(relativeError(logits[1], logits[0]));
});
