import { AcceptanceRate } from "./acceptanceRate.ts";
import type { Drafter } from "./drafter.ts";
import { bestLength, burstRate, type Odds } from "./draftLength.ts";
import { StepCost } from "./stepCost.ts";

/** Longest draft that is ever tried. */
export const LONGEST_DRAFT = 8;
/** Drafting must promise this much more than plain decoding: estimates err. */
const MARGIN = 1.03;
/** Every so many bursts one goes without drafts, to know what they save. */
const CONTROL_INTERVAL = 64;
/** Tokens of a drafter's first drafts, which tell what it costs. */
const TRIAL_DRAFT = 2;

/** A drafter to ask, and for how many tokens at most. */
export interface Choice {
  readonly drafter: Drafter;
  readonly length: number;
}

/** What a burst took and gave. */
export interface BurstReport {
  readonly sequences: number;
  /** Rows of the verification. */
  readonly rows: number;
  readonly verifySeconds: number;
  readonly drafts: readonly DraftReport[];
}

export interface DraftReport {
  readonly drafter: Drafter;
  readonly seconds: number;
  /** Steps of the model. */
  readonly steps: number;
  /** By sequence that was given a draft: its length, and how much was accepted. */
  readonly outcomes: readonly { readonly drafted: number; readonly accepted: number }[];
}

/** Decides how the next burst drafts. */
export interface DraftPolicy {
  /** The drafters to ask, one after the other, each for the sequences without a draft so far. */
  choose(sequences: number): readonly Choice[];
  observe(report: BurstReport): void;
}

/** The same length at every burst. */
export function fixedPolicy(drafters: readonly Drafter[], length: number): DraftPolicy {
  const choices = drafters.map((drafter) => ({ drafter, length }));
  return { choose: () => choices, observe: () => undefined };
}

export interface AdaptivePolicyOptions {
  /** Goes without drafts where they do not pay. Default false: the best length is at least 1. */
  readonly rests?: boolean;
  /** Longest draft. Default {@link LONGEST_DRAFT}. */
  readonly most?: number;
}

/**
 * Learns from every burst what drafts cost, what verification costs by its rows and how many drafted tokens are
 * accepted, and asks those drafters that promise the most tokens per second.
 */
export function adaptivePolicy(
  drafters: readonly Drafter[],
  { rests = false, most = LONGEST_DRAFT }: AdaptivePolicyOptions = {},
): DraftPolicy {
  const verification = new StepCost();
  const learned = new Map(
    drafters.map((drafter) => [drafter, { rate: new AcceptanceRate(), cost: new StepCost() }]),
  );
  let bursts = 0;

  function oddsOf(drafter: Drafter, sequences: number): Odds {
    const { rate, cost } = learned.get(drafter)!;
    const verifySeconds = (rows: number) => verification.seconds(rows);
    const draftSeconds = drafter.stepsPerToken === 0 ? 0 : cost.seconds(sequences);
    return { acceptance: rate.value, draftSeconds, verifySeconds, sequences };
  }

  return {
    choose(sequences) {
      bursts++;
      if (bursts % CONTROL_INTERVAL === 0 || !verification.measured) return [];
      const untried = drafters.find(
        (drafter) => drafter.stepsPerToken > 0 && !learned.get(drafter)!.cost.measured,
      );
      if (untried) return [{ drafter: untried, length: Math.min(TRIAL_DRAFT, most) }];
      const offers = drafters.map((drafter) => {
        const odds = oddsOf(drafter, sequences);
        const { length, rate } = bestLength(odds, most);
        return { drafter, length, rate, pays: rate > MARGIN * burstRate(odds, 0) };
      });
      return offers.filter(({ pays }) => pays || !rests).sort((a, b) => b.rate - a.rate);
    },
    observe({ rows, verifySeconds, drafts }) {
      verification.observe(rows, verifySeconds);
      for (const [drafter, { rate }] of learned) {
        if (!drafts.some((draft) => draft.drafter === drafter)) rate.fade(1);
      }
      for (const { drafter, seconds, steps, outcomes } of drafts) {
        const { rate, cost } = learned.get(drafter)!;
        if (steps > 0) cost.observe(outcomes.length, seconds / steps);
        for (const { drafted, accepted } of outcomes) rate.observe(accepted, accepted === drafted);
      }
    },
  };
}
