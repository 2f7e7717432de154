import { describe, expect, it } from "vitest";
import { retryAfterMs } from "../../../src/checkpoint/hub/failure.ts";
import { planParts, readNote, receivedBytes, writeNote } from "../../../src/checkpoint/hub/parts.ts";
import { type Progress, progressMeter } from "../../../src/checkpoint/hub/progress.ts";

describe("progress", () => {
  it("tells rate and time left, not counting what was on disk", () => {
    const told: Progress[] = [];
    let now = 0;
    const meter = progressMeter(
      1000,
      (progress) => told.push(progress),
      () => now,
    );
    meter.skip("a", 500);
    expect(told.at(-1)).toMatchObject({ receivedBytes: 500, bytesPerSecond: 0, secondsLeft: undefined });
    now = 1000;
    meter.add("b", 100);
    expect(told.at(-1)).toMatchObject({ file: "b", receivedBytes: 600, bytesPerSecond: 100, secondsLeft: 4 });
    meter.add("b", 100);
    expect(told).toHaveLength(2);
    meter.add("b", 300);
    expect(told.at(-1)).toMatchObject({ receivedBytes: 1000, secondsLeft: 0 });
  });

  it("forgets an old rate", () => {
    const told: Progress[] = [];
    let now = 0;
    const meter = progressMeter(
      1e9,
      (progress) => told.push(progress),
      () => now,
    );
    for (; now < 20_000; now += 1000) meter.add("a", now < 10_000 ? 1000 : 10);
    expect(told.at(-1)?.bytesPerSecond).toBeLessThan(20);
  });
});

describe("parts", () => {
  it("cover the file, and survive a note", () => {
    const parts = planParts(100, 33);
    expect(parts.map((part) => part.length)).toEqual([33, 33, 33, 1]);
    parts[1].received = 20;
    const note = readNote(writeNote(100, 33, parts), 100);
    expect(note).toEqual({ partBytes: 33, parts });
    expect(receivedBytes(parts)).toBe(20);
    expect(planParts(0, 33)).toEqual([]);
  });

  it("are planned anew after a damaged note", () => {
    const text = writeNote(100, 33, planParts(100, 33));
    for (const bad of ["", "null", "1", text.slice(1), text.replace("33", "0"), text.replace("33", "1e-9")])
      expect(readNote(bad, 100)).toBeUndefined();
    expect(readNote(text.replace("[0", "[34"), 100)).toBeUndefined();
    expect(readNote(text.replace("[0", "[-1"), 100)).toBeUndefined();
    expect(readNote(text, 101)).toBeUndefined();
  });
});

describe("Retry-After", () => {
  it.each([
    [{ "retry-after": "3" }, 3000],
    [{ "retry-after": "Thu, 01 Jan 1970 00:00:05 GMT" }, 5000],
    [{ ratelimit: '"api";r=0;t=55' }, 55_000],
    [{ "retry-after": "soon" }, undefined],
    [{}, undefined],
  ])("%j is %s ms", (headers, wait) => {
    expect(retryAfterMs(new Headers(headers as Record<string, string>), 0)).toBe(wait);
  });
});
