/** What drafting pays and costs. */
export interface Odds {
  /** Probability that a token is accepted when those before it were. */
  readonly acceptance: number;
  /** Seconds of a draft token, for all sequences together. */
  readonly draftSeconds: number;
  /** Seconds of a verification over so many rows. */
  readonly verifySeconds: (rows: number) => number;
  /** Sequences side by side. */
  readonly sequences: number;
}

/** Expected tokens of a burst, for each sequence: 1 + a + ... + a^length (Leviathan et al. 2023, equation 1). */
export function expectedTokens(acceptance: number, length: number): number {
  let [tokens, probability] = [1, 1];
  for (let i = 0; i < length; i++) {
    probability *= acceptance;
    tokens += probability;
  }
  return tokens;
}

/** Expected tokens per second, of all sequences together, when each drafts `length` tokens. */
export function burstRate(
  { acceptance, draftSeconds, verifySeconds, sequences }: Odds,
  length: number,
): number {
  const seconds = length * draftSeconds + verifySeconds(sequences * (length + 1));
  return (sequences * expectedTokens(acceptance, length)) / seconds;
}

/** The draft length from 1 to `most` with the best rate. */
export function bestLength(odds: Odds, most: number): { length: number; rate: number } {
  let best = { length: 1, rate: burstRate(odds, 1) };
  for (let length = 2; length <= most; length++) {
    const rate = burstRate(odds, length);
    if (rate > best.rate) best = { length, rate };
  }
  return best;
}
