import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LAYER_KINDS } from "../../src/compensation/groups.ts";
import { uniformShares } from "../../src/compensation/settings.ts";
import type { Model } from "../../src/engine/model.ts";
import { type Reading, readingKey } from "../../src/engine/reading.ts";
import { tuneCompensation } from "../../src/engine/tuneCompensation.ts";
import { UsageError } from "../../src/errors.ts";

/** What a channel of 1024 of each kind adds to a step of a second. */
const perChannel = { qkv: 4e-4, o: 1e-4, gateUp: 8e-4, down: 2e-4 };
/** By the number of threads that read. */
const reading: Record<number, number> = { 1: 1.5, 2: 1, 4: 1.2 };

let clock = 0;
beforeEach(() => {
  vi.spyOn(performance, "now").mockImplementation(() => 1000 * clock);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A model on four threads whose steps take as long as this machine says; kinds together take `jointly` of their sum. */
function modelOf({ inFile = false, jointly = 1, residual = true }) {
  const runner = {
    reading: {
      activations: "int8",
      ...(residual && { compensation: { channels: uniformShares(32), select: "exact" } }),
    },
    spec: { vocabularySize: 96 },
    cache: { capacity: 64 },
    step: async (_input: unknown, _wanted: unknown, { compensation }: Reading) => {
      clock += secondsOf(compensation, jointly);
    },
  };
  const weights = { residuals: residual ? { inFile } : undefined };
  return { runner, source: "model", weights, backend: { threads: 4 } } as unknown as Model;
}

function secondsOf(compensation: Reading["compensation"], jointly: number): number {
  if (!compensation) return 1;
  const { channels, readers = 2 } = compensation;
  const used = LAYER_KINDS.filter((kind) => channels[kind] > 0);
  const sum = used.reduce((seconds, kind) => seconds + perChannel[kind] * channels[kind], 0);
  return 1 + sum * reading[readers] * (used.length > 1 ? jointly : 1);
}

it("finds the channels of each kind that fit, from its time alone", async () => {
  const found = await tuneCompensation(modelOf({}), { slowdown: 0.0499 });
  // 32 of each take 4.8%; what is left buys one step of 4 where it costs least, and another.
  expect(found.channels).toEqual({ qkv: 32, o: 40, gateUp: 32, down: 36 });
  expect(found.readers).toBeUndefined();
  expect(found.secondsWithout).toBeCloseTo(1, 9);
  expect(found.seconds).toBeCloseTo(secondsOf({ ...found, select: "exact" }, 1), 9);
  for (const kind of LAYER_KINDS) {
    for (const { channels, seconds } of found.costs[kind]) {
      expect(seconds).toBeCloseTo(perChannel[kind] * channels, 9);
    }
  }
});

it("measures the whole and cuts it down while it is too slow", async () => {
  const found = await tuneCompensation(modelOf({ jointly: 1.5 }), { slowdown: 0.06 });
  expect(found.seconds).toBeLessThanOrEqual(1.06);
  expect(found.seconds).toBeGreaterThan(1.045);
});

it("finds first how many threads read rows that stay in the file", async () => {
  const found = await tuneCompensation(modelOf({ inFile: true }), { slowdown: 0.1 });
  expect(found.readers).toBe(2);
  expect(found.seconds).toBeLessThanOrEqual(1.1);
});

it("needs a residual", async () => {
  const tuning = tuneCompensation(modelOf({ residual: false }), { slowdown: 0.1 });
  await expect(tuning).rejects.toThrow(UsageError);
});

it("steps that differ in anything are recorded apart", () => {
  const channels = uniformShares(32);
  const compensation = { channels, select: "exact" } as const;
  const readings: Reading[] = [
    { activations: "int8" },
    { activations: "int8", layers: 1 },
    { activations: "float", compensation },
    { activations: "int8", compensation },
    { activations: "int8", compensation: { channels, select: "random" } },
    ...[1, 2].map(
      (readers) => ({ activations: "int8", compensation: { ...compensation, readers } }) as const,
    ),
    ...LAYER_KINDS.map(
      (kind) =>
        ({
          activations: "int8",
          compensation: { ...compensation, channels: { ...channels, [kind]: 0 } },
        }) as const,
    ),
  ];
  expect(new Set(readings.map(readingKey)).size).toBe(readings.length);
});
