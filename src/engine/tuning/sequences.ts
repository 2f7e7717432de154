import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { UsageError } from "../../errors.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { createTokenizer } from "../../text/tokenizer.ts";
import type { CalibrateOptions } from "../calibrate/options.ts";
import { calibrationSequences } from "../calibrate/sequences.ts";
import { type Sequences, tokensOf } from "../sequences.ts";
import { checkWhole } from "../wholeNumber.ts";
import { DEFAULT_TUNE_LENGTH, DEFAULT_TUNE_TOKENS, type TuneOptions } from "./options.ts";

/** Most tokens to learn from: more steps read them again. Samples cost as much as learning from them. */
const MOST_READ = 2 ** 18;
const MOST_SAMPLED = 2 ** 14;
/** Tokens that are measured on, and their largest share of all. */
export const HELD_OUT_TOKENS = 2048;
const HELD_OUT_SHARE = 1 / 4;

/** Everything that tuning is asked, complete. */
export interface TuneRequest {
  readonly steps: number;
  readonly tokens: number;
  readonly sequenceLength: number;
  /** Sequences to read; undefined where the float model makes them up. */
  readonly given: Sequences | undefined;
  /** Sequences to make up. */
  readonly samples: number;
}

/** Fills in defaults and cuts the texts. Throws a UsageError for options outside their ranges and for too little text. */
export function tuneRequest(
  checkpoint: Checkpoint,
  spec: DecoderSpec,
  options: TuneOptions,
  calibrate: CalibrateOptions | undefined,
): TuneRequest {
  const { steps, tokens = DEFAULT_TUNE_TOKENS } = options;
  const { sequenceLength = Math.min(DEFAULT_TUNE_LENGTH, spec.contextLength) } = options;
  checkWhole("tune.steps", steps, 1_000_000);
  checkWhole("tune.tokens", tokens, 2 ** 22);
  checkWhole("tune.sequenceLength", sequenceLength, spec.contextLength);
  const wanted = (most: number) => {
    const training = Math.min(steps * tokens, most);
    return training + Math.min(HELD_OUT_TOKENS, HELD_OUT_SHARE * training);
  };
  const given = givenSequences(checkpoint, options, calibrate, sequenceLength, wanted(MOST_READ));
  if (given && given.length < 2) {
    throw new UsageError(
      `the text to tune on has only ${given.length} sequence of ${sequenceLength} tokens, and some are held out to measure; give more text`,
    );
  }
  const samples = Math.max(2, Math.ceil(wanted(MOST_SAMPLED) / sequenceLength));
  return { steps, tokens, sequenceLength, given, samples };
}

/** Sequences to learn from, and others, spread evenly among them, to measure on. */
export function holdOut(sequences: Sequences): {
  readonly training: Sequences;
  readonly heldOut: Sequences;
} {
  const tokens = tokensOf(sequences);
  const share = Math.min(HELD_OUT_SHARE, HELD_OUT_TOKENS / tokens);
  const count = Math.max(1, Math.round(share * sequences.length));
  const isHeldOut = (s: number) =>
    Math.floor(((s + 1) * count) / sequences.length) > Math.floor((s * count) / sequences.length);
  return {
    training: sequences.filter((_, s) => !isHeldOut(s)),
    heldOut: sequences.filter((_, s) => isHeldOut(s)),
  };
}

function givenSequences(
  checkpoint: Checkpoint,
  { texts, ids, bos }: TuneOptions,
  calibrate: CalibrateOptions | undefined,
  sequenceLength: number,
  tokens: number,
): Sequences | undefined {
  if (ids || (!texts && calibrate?.ids)) return pieces((ids ?? calibrate?.ids)!, sequenceLength);
  const read = texts ?? calibrate?.texts;
  if (!read) return undefined;
  if (!checkpoint.tokenizer) {
    throw new UsageError(`${checkpoint.source}: has no tokenizer to read texts to tune on with`);
  }
  const tokenizer = createTokenizer(checkpoint.tokenizer, checkpoint.generationConfig);
  return calibrationSequences(read, tokenizer, { tokens, sequenceLength, bos: bos ?? calibrate?.bos });
}

/** Sequences cut to at most `length` tokens. */
function pieces(sequences: Sequences, length: number): Sequences {
  return sequences.flatMap((ids) =>
    Array.from({ length: Math.ceil(ids.length / length) }, (_, i) => ids.slice(i * length, (i + 1) * length)),
  );
}
