import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AcceptanceRate } from "../../src/speculation/acceptanceRate.ts";
import type { Drafter } from "../../src/speculation/drafter.ts";
import { bestLength, burstRate, expectedTokens } from "../../src/speculation/draftLength.ts";
import { ngramDrafter } from "../../src/speculation/ngram.ts";
import { adaptivePolicy } from "../../src/speculation/policy.ts";
import type { Sequence } from "../../src/speculation/sequence.ts";
import { StepCost } from "../../src/speculation/stepCost.ts";

describe("step cost", () => {
  it("finds the line through noisy steps and predicts rows it has not seen", () => {
    const cost = new StepCost();
    for (let i = 0; i < 60; i++) cost.observe(1 + (i % 4), (10 + 2 * (i % 4)) * (1 + 0.02 * Math.sin(i)));
    expect(cost.seconds(1) / 10).toBeCloseTo(1, 1);
    expect(cost.seconds(8) / 24).toBeCloseTo(1, 1);
  });

  it("ignores the first step of its kind, and hiccups", () => {
    const cost = new StepCost();
    for (const seconds of [500, 10, 10, 10, 10, 10, 900, 10]) cost.observe(1, seconds);
    expect(cost.seconds(1)).toBeLessThan(12);
  });
});

describe("draft length", () => {
  it("expects what Leviathan et al. give in closed form", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 0.99, noNaN: true }), fc.nat(8), (rate, length) => {
        const closed = (1 - rate ** (length + 1)) / (1 - rate);
        expect(expectedTokens(rate, length) / closed).toBeCloseTo(1, 9);
      }),
    );
  });

  it("grows with acceptance, shrinks with the cost of drafts", () => {
    const verifySeconds = (rows: number) => 10 + rows;
    const odds = (acceptance: number, draftSeconds: number) => {
      return { acceptance, draftSeconds, verifySeconds, sequences: 1 };
    };
    const length = (acceptance: number, draftSeconds: number) =>
      bestLength(odds(acceptance, draftSeconds), 8).length;
    expect(length(0.99, 0)).toBe(8);
    expect(length(0.3, 0)).toBeLessThan(3);
    expect(length(0.9, 5)).toBeLessThan(length(0.9, 1));
    expect(burstRate(odds(0.9, 11), 4)).toBeLessThan(burstRate(odds(0.9, 11), 0));
  });
});

describe("acceptance rate", () => {
  it("nears what it sees, and forgets", () => {
    const rate = new AcceptanceRate();
    for (let i = 0; i < 100; i++) rate.observe(0, false);
    expect(rate.value).toBeLessThan(0.1);
    const low = rate.value;
    for (let i = 0; i < 300; i++) rate.fade(1);
    expect(rate.value).toBeGreaterThan(low + 0.3);
    for (let i = 0; i < 100; i++) rate.observe(4, true);
    expect(rate.value).toBeGreaterThan(0.95);
  });
});

describe("adaptive policy", () => {
  const drafter = (name: string, stepsPerToken: 0 | 1): Drafter => ({
    name,
    stepsPerToken,
    draft: async () => [],
  });
  /** Seconds that a model takes whose drafts cost `draftSeconds` a token. */
  function simulate(chosen: Drafter[], acceptances: number[], draftSeconds: number, bursts: number) {
    const policy = adaptivePolicy(chosen, { rests: true });
    const lengths: number[][] = chosen.map(() => []);
    let [seconds, tokens, dice] = [0, 0, 1];
    for (let burst = 0; burst < bursts; burst++) {
      const [choice] = policy.choose(1);
      const drafted = choice?.length ?? 0;
      const who = choice ? chosen.indexOf(choice.drafter) : -1;
      let accepted = 0;
      while (accepted < drafted) {
        dice = (dice * 48271) % 2147483647;
        if (dice / 2147483647 > acceptances[who]) break;
        accepted++;
      }
      const verifySeconds = 10 + drafted + 1;
      const drafting = choice ? drafted * choice.drafter.stepsPerToken * draftSeconds : 0;
      if (choice) lengths[who].push(drafted);
      seconds += verifySeconds + drafting;
      tokens += accepted + 1;
      policy.observe({
        ...{ sequences: 1, rows: drafted + 1, verifySeconds },
        drafts: choice
          ? [
              {
                ...{
                  drafter: choice.drafter,
                  seconds: drafting,
                  steps: drafted * choice.drafter.stepsPerToken,
                },
                outcomes: [{ drafted, accepted }],
              },
            ]
          : [],
      });
    }
    return { speedup: (tokens * 11) / seconds, lengths };
  }

  it("drafts long where drafts are cheap and right", () => {
    const { speedup, lengths } = simulate([drafter("good", 1)], [0.98], 2, 400);
    expect(speedup).toBeGreaterThan(2);
    expect(lengths[0].at(-1)).toBeGreaterThanOrEqual(5);
  });

  it("rests where they cost as much as they save, or are wrong", () => {
    for (const [acceptance, draftSeconds] of [
      [0.98, 11],
      [0.02, 3],
    ]) {
      const { speedup, lengths } = simulate([drafter("bad", 1)], [acceptance], draftSeconds, 800);
      expect(speedup).toBeGreaterThan(0.95);
      expect(lengths[0].length).toBeLessThan(80);
    }
  });

  it("takes the better of two drafters", () => {
    const { lengths } = simulate([drafter("worse", 1), drafter("better", 1)], [0.4, 0.95], 2, 400);
    expect(lengths[1].length).toBeGreaterThan(5 * lengths[0].length);
  });
});

describe("look-up", () => {
  async function lookUp(tokens: number[], length: number) {
    const sequence = { prompt: tokens.slice(0, 2), generated: tokens.slice(2) } as unknown as Sequence;
    const [{ ids }] = await ngramDrafter().draft([sequence], [length]);
    return ids;
  }

  it("continues the longest earlier match, the latest of equals", async () => {
    expect(await lookUp([1, 2, 3, 4, 9, 1, 2, 3], 3)).toEqual([4, 9, 1]);
    expect(await lookUp([1, 2, 3, 4, 0, 2, 3, 5, 0, 1, 2, 3], 1)).toEqual([4]);
    expect(await lookUp([2, 3, 4, 0, 2, 3, 5, 0, 2, 3], 2)).toEqual([5, 0]);
  });

  it("repeats what repeats", async () => {
    expect(await lookUp([7, 7, 7, 7], 4)).toEqual([7, 7, 7, 7]);
    expect(await lookUp([5, 1, 2, 1, 2, 1, 2], 5)).toEqual([1, 2, 1, 2, 1]);
  });

  it("knows nothing where nothing recurs", async () => {
    expect(await lookUp([1, 2, 3, 4, 5, 6], 4)).toEqual([]);
    expect(await lookUp([1, 2, 3, 9, 3], 4)).toEqual([]);
    expect(await lookUp([4], 4)).toEqual([]);
    expect(await lookUp([4, 4], 4)).toEqual([]);
  });
});
