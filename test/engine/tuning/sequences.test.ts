import { describe, expect, it } from "vitest";
import { adamStep, rateAt } from "../../../src/engine/tuning/adam.ts";
import { readingOrder } from "../../../src/engine/tuning/schedule.ts";
import { holdOut } from "../../../src/engine/tuning/sequences.ts";
import { Teacher } from "../../../src/engine/tuning/teacher.ts";
import { openWasm } from "../../../src/ops/wasm.ts";
import { openFixture } from "../../models/fixture.ts";
import { rounded, sequences } from "./rounded.ts";

describe("holdOut", () => {
  it.each([
    [2, 10, 1],
    [7, 256, 2],
    [100, 256, 8],
    [5, 4000, 1],
  ])("of %i sequences of %i tokens, %i", (count, length, expected) => {
    const all = sequences(count, length);
    const { training, heldOut } = holdOut(all);
    expect(heldOut).toHaveLength(expected);
    expect(new Set([...training, ...heldOut])).toEqual(new Set(all));
    expect(training.length + heldOut.length).toBe(count);
  });
});

describe("readingOrder", () => {
  it("goes through all before it begins again, in another order", () => {
    const order = readingOrder(25, 10, 3);
    const rounds = [order.slice(0, 10), order.slice(10, 20)];
    for (const round of rounds) expect(round.toSorted((a, b) => a - b)).toEqual([...Array(10).keys()]);
    expect(rounds[0]).not.toEqual(rounds[1]);
    expect(new Set(order.slice(20)).size).toBe(5);
  });
});

describe("adam", () => {
  it("takes first steps of the rate against the gradient, whatever its size", () => {
    const values = new Float64Array(3);
    const moments = { first: new Float64Array(3), second: new Float64Array(3) };
    adamStep(values, Float64Array.of(1e-6, -30, 0), moments, 1, 0.1);
    expect(values[0]).toBeCloseTo(-0.1, 5);
    expect(values[1]).toBeCloseTo(0.1, 5);
    expect(values[2]).toBe(0);
  });

  it("rises and falls", () => {
    const rates = Array.from({ length: 40 }, (_, i) => rateAt(i + 1, 40));
    expect(rates.slice(0, 4)).toEqual([0.25, 0.5, 0.75, 1]);
    expect(rates.slice(3)).toEqual(rates.slice(3).toSorted((a, b) => b - a));
    expect(rates[39]).toBeGreaterThan(0);
    expect(rateAt(1, 1)).toBe(1);
  });
});

describe("the teacher", () => {
  it("gives the same streams alone and ahead of time", async () => {
    const checkpoint = await openFixture("gemma2");
    const { spec } = await rounded(checkpoint, "nuq-4");
    const backend = await openWasm();
    const all = sequences(5, 12);
    const ahead = new Teacher(spec, checkpoint, backend, all);
    const first = await ahead.streams([3], [0, 3, 4]);
    const alone = await new Teacher(spec, checkpoint, backend, all).streams([4, 3], []);
    expect(await ahead.streams([4, 3], [])).toEqual(alone);
    expect(first[0]).toEqual(alone[1]);
    backend.dispose();
  });
});
