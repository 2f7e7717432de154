import { UsageError } from "../errors.ts";

/** What a piece of streamed text turned into. */
export interface StopResult {
  /** Text that is safe to show: no stop string begins in it. */
  readonly text: string;
  /** The stop string that was found; it and what follows are not shown. */
  readonly stop?: string;
}

/** Looks for stop strings in streamed text. */
export interface StopMatcher {
  /** Adds text and says what can be shown now. After a stop string was found everything is swallowed. */
  push(text: string): StopResult;
  /** The text still held back because a stop string might have begun there. */
  flush(): string;
}

/**
 * Makes a matcher that stops at the stop string which is complete first, and among those complete at the same
 * character at the one that begins first. How the text is cut into pieces makes no difference.
 *
 * @throws UsageError for an empty stop string.
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  for (const stop of stops) {
    if (typeof stop !== "string" || stop === "") {
      throw new UsageError("a stop string is empty: give at least one character");
    }
  }
  let held = "";
  let found: string | undefined;

  function push(text: string): StopResult {
    if (found !== undefined) return { text: "", stop: found };
    const seen = held + text;
    const match = firstMatch(seen, stops);
    if (match) {
      found = match.stop;
      held = "";
      return { text: seen.slice(0, match.start), stop: match.stop };
    }
    const safe = seen.length - longestOpening(seen, stops);
    held = seen.slice(safe);
    return { text: seen.slice(0, safe) };
  }

  function flush(): string {
    const rest = held;
    held = "";
    return rest;
  }

  return { push, flush };
}

function firstMatch(text: string, stops: readonly string[]): { start: number; stop: string } | undefined {
  let first: { start: number; stop: string } | undefined;
  for (const stop of stops) {
    const start = text.indexOf(stop);
    if (start === -1) continue;
    const end = start + stop.length;
    const firstEnd = first === undefined ? Infinity : first.start + first.stop.length;
    if (end < firstEnd || (end === firstEnd && start < first!.start)) first = { start, stop };
  }
  return first;
}

/** The length of the longest end of the text that is the beginning of a stop string. */
function longestOpening(text: string, stops: readonly string[]): number {
  let longest = 0;
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
      if (stop.startsWith(text.slice(text.length - length))) longest = length;
    }
  }
  return longest;
}
