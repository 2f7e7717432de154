import { describe, expect, it } from "vitest";
import { initialState, type TuneRun, tune } from "../../../src/engine/tuning/tune.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { openFixture } from "../../models/fixture.ts";
import { rounded, sequences } from "./rounded.ts";

const heldOut = sequences(14, 24).slice(10);

/** Tunes a tiny model; with the parameters found. */
async function tuned(options: Partial<TuneRun>) {
  const original = await openFixture("llama-linear");
  const { spec, quantized, parameters } = await rounded(original, "nuq-2");
  const state = initialState(parameters.values.length);
  const backend = await openWasm();
  const run = { spec, original, quantized, parameters, state, backend, heldOut, steps: 12, tokens: 72 };
  const result = await tune({ ...run, training: sequences(10, 24), ...options });
  backend.dispose();
  return { result, values: parameters.values, state };
}

describe("tune", () => {
  it("brings predictions nearer to the float model's on tokens that it has not seen", async () => {
    const seen: number[] = [];
    const { result, values } = await tuned({
      rate: 0.01,
      onProgress: (done, total) => seen.push(done / total),
    });
    expect(result.divergenceAfter).toBeLessThan(0.9 * result.divergenceBefore);
    expect(result).toMatchObject({ trainingTokens: 240, heldOutTokens: 96 });
    expect(values.some((value) => value !== 0)).toBe(true);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen.at(-1)).toBeCloseTo(1);
  });

  it("keeps the model as it is when no step makes it better", async () => {
    const { result, values } = await tuned({ rate: 3, steps: 2 });
    expect(result.bestStep).toBe(0);
    expect(result.divergenceAfter).toBe(result.divergenceBefore);
    expect(values.every((value) => value === 0)).toBe(true);
  });

  it("reads sequences in an order of the seed", async () => {
    const [a, b, c] = [await tuned({ seed: 1 }), await tuned({ seed: 1 }), await tuned({ seed: 2 })];
    expect(b.values).toEqual(a.values);
    expect(c.values).not.toEqual(a.values);
  });
});
