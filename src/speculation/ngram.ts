import type { Draft, Drafter } from "./drafter.ts";
import { lengthOf, type Sequence, tokenAt } from "./sequence.ts";

/** Shorter matches are seldom followed by the same again. */
const SHORTEST = 2;
/** A longer match says no more. */
const LONGEST = 6;

/**
 * Prompt look-up (Saxena 2023): what followed the last tokens when they last occurred follows again. Free, and right
 * wherever an answer quotes: code, summaries, corrections, tables.
 */
export function ngramDrafter(): Drafter {
  return {
    name: "ngram",
    stepsPerToken: 0,
    draft: async (sequences, lengths) => sequences.map((sequence, i) => lookUp(sequence, lengths[i])),
  };
}

function lookUp(sequence: Sequence, length: number): Draft {
  const total = lengthOf(sequence);
  const end = longestMatch(sequence, total);
  if (end === undefined) return { ids: [] };
  // A match that reaches into what it predicts repeats itself.
  const period = total - end;
  const ids = Array.from({ length }, (_, i) => tokenAt(sequence, end + (i % period)));
  return { ids };
}

/** Where the longest earlier occurrence of the last tokens ends, the latest of equals. Thousands of tokens take microseconds. */
function longestMatch(sequence: Sequence, total: number): number | undefined {
  const last = tokenAt(sequence, total - 1);
  let best: number | undefined;
  let longest = SHORTEST - 1;
  for (let end = total - 1; end >= SHORTEST && longest < LONGEST; end--) {
    if (tokenAt(sequence, end - 1) !== last) continue;
    let match = 1;
    while (
      match < LONGEST &&
      match < end &&
      tokenAt(sequence, end - 1 - match) === tokenAt(sequence, total - 1 - match)
    ) {
      match++;
    }
    if (match > longest) {
      longest = match;
      best = end;
    }
  }
  return best;
}
