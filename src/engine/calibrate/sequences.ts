import { UsageError } from "../../errors.ts";
import { type BosRule, bosBy } from "../../text/bos.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";

export interface SequenceOptions {
  /** Tokens in all. */
  readonly tokens: number;
  /** Tokens of one sequence, each run from an empty cache. */
  readonly sequenceLength: number;
  /** Starts every sequence with the beginning-of-sequence token: as the tokenizer's config says, or regardless. */
  readonly bos?: BosRule;
}

/** Characters that hold a sequence's tokens in any language: English has four to five a token. */
const CHARACTERS_PER_TOKEN = 8;

/**
 * Token sequences for calibration, spread evenly over texts. Of long texts only the places used are tokenized.
 * Fewer tokens come out when the texts have fewer; throws a UsageError when they do not fill one sequence.
 */
export function calibrationSequences(
  texts: readonly string[],
  tokenizer: Pick<Tokenizer, "encode" | "bosId" | "addBos">,
  { tokens, sequenceLength, bos = "auto" }: SequenceOptions,
): number[][] {
  const first = bosBy(bos, tokenizer);
  const length = first === undefined ? sequenceLength : sequenceLength - 1;
  const wanted = Math.max(1, Math.round(tokens / sequenceLength));
  const text = texts.join("\n\n");
  const span = CHARACTERS_PER_TOKEN * length;
  const encode = (from: number, to: number) =>
    tokenizer.encode(text.slice(from, to), { parseSpecialTokens: false });
  let windows: number[][];
  if (text.length > wanted * span) {
    const stride = (text.length - span) / Math.max(1, wanted - 1);
    windows = Array.from({ length: wanted }, (_, i) => {
      const from = Math.floor(i * stride);
      return encode(from, from + span).slice(0, length);
    });
    windows = windows.filter((window) => window.length === length);
  } else {
    const ids = encode(0, text.length);
    const whole = Math.floor(ids.length / length);
    const count = Math.min(wanted, whole);
    windows = Array.from({ length: count }, (_, i) => {
      const from = Math.floor((i * whole) / count) * length;
      return ids.slice(from, from + length);
    });
  }
  if (windows.length === 0) {
    throw new UsageError(
      `the calibration text is shorter than one sequence of ${sequenceLength} tokens; give more text`,
    );
  }
  return windows.map((window) => (first === undefined ? window : [first, ...window]));
}
