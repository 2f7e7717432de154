import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Arena } from "../../src/backends/arena.ts";
import { HalftoneError } from "../../src/errors.ts";

describe("Arena", () => {
  it("never overlaps, stays aligned, counts what it handed out", () => {
    const step = fc.oneof(
      fc.record({ allocate: fc.integer({ min: 0, max: 5000 }) }),
      fc.record({ free: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        let limit = 0;
        const arena = new Arena(100, (end) => {
          limit = Math.max(limit, end);
          return true;
        });
        const live: { start: number; end: number }[] = [];
        for (const one of steps) {
          if ("allocate" in one) {
            const start = arena.allocate(one.allocate);
            const end = start + Math.max(1, one.allocate);
            expect(start % 64).toBe(0);
            expect(start).toBeGreaterThanOrEqual(100);
            expect(end).toBeLessThanOrEqual(limit);
            expect(live.every((other) => end <= other.start || start >= other.end)).toBe(true);
            live.push({ start, end });
          } else if (live.length > 0) {
            arena.free(live.splice(one.free % live.length, 1)[0].start);
          }
          const bytes = live.reduce((sum, { start, end }) => sum + Math.ceil((end - start) / 64) * 64, 0);
          expect(arena.bytesAllocated).toBe(bytes);
        }
        // Freed neighbours join: one piece of everything then fits where everything was.
        for (const { start } of live) arena.free(start);
        const before = limit;
        if (before > 0) expect(arena.allocate(before - 128)).toBe(128);
        expect(limit).toBe(before);
      }),
      { numRuns: 100 },
    );
  });

  it("ignores what it did not hand out, and what was freed already", () => {
    const arena = new Arena(0, () => true);
    const place = arena.allocate(64);
    arena.free(place + 64);
    arena.free(place);
    arena.free(place);
    expect(arena.bytesAllocated).toBe(0);
    expect([arena.allocate(64), arena.allocate(64)]).toEqual([0, 64]);
  });

  it("says how much did not fit, and goes on", () => {
    const arena = new Arena(0, (end) => end <= 3 << 20);
    const place = arena.allocate(2 << 20);
    expect(() => arena.allocate(5 << 20)).toThrow(HalftoneError);
    expect(() => arena.allocate(5 << 20)).toThrow("5 MB more do not fit beside 2 MB; take a smaller model");
    expect(arena.bytesAllocated).toBe(2 << 20);
    arena.free(place);
    expect(arena.allocate(3 << 20)).toBe(0);
  });
});
