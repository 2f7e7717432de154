import { describe, expect, it } from "vitest";
import { TeamSize } from "../../../src/backends/wasm/teamSize.ts";

/** Runs for so many milliseconds of a machine on which the two ways take these; returns what the runs were and took. */
function work(team: TeamSize, clock: { now: number }, lasts: number, alone: number, together: number) {
  const end = clock.now + lasts;
  let [singles, runs] = [0, 0];
  while (clock.now < end) {
    const single = team.choose();
    const time = single ? alone : together;
    clock.now += time;
    team.observe(single, time);
    runs++;
    if (single) singles++;
  }
  return { runs, singles };
}

describe("the size of a team", () => {
  it("is all threads where they are faster, at a cost of a fiftieth at most", () => {
    const { runs, singles } = work(new TeamSize(2), { now: 0 }, 10_000, 0.75, 0.43);
    expect(singles).toBeGreaterThan(1);
    expect((singles * 0.75) / (runs * 0.43)).toBeLessThan(0.02);
  });

  it("is all threads after a run that was held up", () => {
    const team = new TeamSize(2);
    const clock = { now: 0 };
    work(team, clock, 1_000, 0.75, 0.43);
    team.observe(false, 20);
    expect(team.isAlone).toBe(false);
  });

  it("does not try one thread on the few steps of a prompt", () => {
    expect(work(new TeamSize(2), { now: 0 }, 600, 80, 40).singles).toBe(0);
  });

  it("is all threads where they are hardly faster, or hardly slower", () => {
    for (const together of [0.95, 1.1])
      expect(work(new TeamSize(2), { now: 0 }, 5_000, 1, together).singles).toBeLessThan(100);
  });

  it("is one where threads wait for one another, until they no longer do", () => {
    const team = new TeamSize(2);
    const clock = { now: 0 };
    const held = work(team, clock, 30_000, 3, 300);
    expect(held.runs).toBeGreaterThan(8_000);
    expect(team.isAlone).toBe(true);
    expect(team.heldUp).toBeCloseTo(300);
    // Another program meanwhile: it need not find out by itself.
    expect(work(new TeamSize(2, team.heldUp), { now: clock.now }, 1_000, 3, 300).runs).toBeGreaterThan(300);
    work(team, clock, 30_000, 3, 2);
    expect(team.isAlone).toBe(false);
  });

  it("is one for programs too small to share, which says nothing of others", () => {
    const team = new TeamSize(2);
    work(team, { now: 0 }, 100, 0.01, 0.02);
    expect([team.isAlone, team.heldUp]).toEqual([true, 0]);
  });

  it("begins alone as it is told, and finds out", () => {
    const team = new TeamSize(2, 20);
    expect(team.choose()).toBe(true);
    work(team, { now: 0 }, 4_000, 3, 1);
    expect(team.isAlone).toBe(false);
  });
});
