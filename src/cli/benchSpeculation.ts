import type { Model } from "../engine/model.ts";
import type { SpeculationOptions } from "../speculation/speculation.ts";
import type { SpeculationStatistics } from "../speculation/statistics.ts";
import { growTogether } from "../speculation/together.ts";
import { significant } from "./format.ts";

/** Greedy answers to texts, with drafts and without, side by side. */
export interface SpeculationMeasurement
  extends Pick<
    SpeculationStatistics,
    "draft" | "drafted" | "accepted" | "acceptanceRate" | "tokensPerVerify"
  > {
  readonly threads: number;
  readonly batch: number;
  /** Of all sequences together. */
  readonly tokensPerSecond: number;
  readonly plainTokensPerSecond: number;
  readonly speedup: number;
}

/** What the sequences continue, one after the other. */
const texts = [
  "The capital of France is",
  "Once upon a time there was a fox who wanted to learn",
  "To make a good soup you need",
  "The first ten numbers are one, two, three,",
  "In the morning the farmer",
  "A computer is a machine that",
  "My favourite season is the summer, because",
  "Dear friend, thank you for your letter.",
];
/** Measured so often each way, in turns; once more before, to warm up. */
const RUNS = 3;

/** Measures `tokens` tokens of each of `batch` answers. */
export async function benchSpeculation(
  model: Model,
  options: SpeculationOptions,
  { threads, batch, tokens, signal }: { threads: number; batch: number; tokens: number; signal: AbortSignal },
): Promise<SpeculationMeasurement> {
  const prompts = Array.from({ length: batch }, (_, i) => model.encodePrompt(texts[i % texts.length]));
  const seconds = { plain: 0, drafted: 0 };
  let [drafts, drafted, accepted, verifications] = [0, 0, 0, 0];
  for (let run = 0; run <= RUNS; run++) {
    for (const kind of ["plain", "drafted"] as const) {
      const speculator = model.speculation.speculator(
        kind === "plain" ? { speculate: "off" } : options,
        false,
      );
      const grown = await growTogether(model.runner, prompts, tokens, speculator);
      signal.throwIfAborted();
      if (run === 0) continue;
      seconds[kind] += grown.seconds;
      if (kind === "plain") continue;
      const { statistics } = speculator;
      drafts += statistics.draft > 0 ? statistics.drafted / statistics.draft : 0;
      drafted += statistics.drafted;
      accepted += statistics.accepted;
      verifications += (batch * (tokens - 1)) / statistics.tokensPerVerify;
    }
  }
  const total = RUNS * batch * (tokens - 1);
  return {
    ...{ threads, batch },
    tokensPerSecond: total / seconds.drafted,
    plainTokensPerSecond: total / seconds.plain,
    draft: drafts > 0 ? drafted / drafts : 0,
    drafted,
    accepted,
    acceptanceRate: drafted > 0 ? accepted / drafted : null,
    tokensPerVerify: 1 + accepted / verifications,
    speedup: seconds.plain / seconds.drafted,
  };
}

/** One line for people. */
export function describeSpeculation(measured: SpeculationMeasurement): string {
  const { threads, batch, tokensPerSecond, plainTokensPerSecond, drafted, accepted, speedup } = measured;
  const answers = batch > 1 ? `${batch} answers together` : "an answer";
  return (
    `${answers}, ${threads} thread${threads > 1 ? "s" : ""}: ${significant(tokensPerSecond)} tokens/s with drafts, ` +
    `${significant(plainTokensPerSecond)} without, ${significant(speedup)} times; ${accepted} of ${drafted} drafted tokens accepted\n`
  );
}
