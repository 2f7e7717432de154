import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { UsageError } from "../../errors.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { createTokenizer } from "../../text/tokenizer.ts";
import type { Sequences } from "../sequences.ts";
import { checkWhole } from "../wholeNumber.ts";
import {
  type CalibrateOptions,
  DEFAULT_CALIBRATION_TOKENS,
  DEFAULT_OWN_LENGTH,
  DEFAULT_OWN_TOKENS,
  DEFAULT_SEQUENCE_LENGTH,
} from "./options.ts";
import { calibrationSequences } from "./sequences.ts";

/** What calibration reads. */
export interface CalibrationRequest {
  /** Sequences to read; undefined where the float model makes them up. */
  readonly given: Sequences | undefined;
  /** Sequences to make up, and the tokens of one. */
  readonly samples: number;
  readonly sequenceLength: number;
}

/** Fills in defaults and cuts the texts. Throws a UsageError for options outside their ranges and for too little text. */
export function calibrationRequest(
  checkpoint: Checkpoint,
  spec: DecoderSpec,
  { texts, ids, bos, ...options }: CalibrateOptions,
): CalibrationRequest {
  const own = !texts && !ids;
  const { tokens = own ? DEFAULT_OWN_TOKENS : DEFAULT_CALIBRATION_TOKENS } = options;
  const standard = own ? DEFAULT_OWN_LENGTH : DEFAULT_SEQUENCE_LENGTH;
  const { sequenceLength = Math.min(standard, spec.contextLength) } = options;
  checkWhole("calibrate.tokens", tokens, 2 ** 30);
  checkWhole("calibrate.sequenceLength", sequenceLength, spec.contextLength);
  const samples = Math.max(1, Math.round(tokens / sequenceLength));
  if (own || ids) return { given: ids, samples, sequenceLength };
  if (!checkpoint.tokenizer) {
    throw new UsageError(`${checkpoint.source}: has no tokenizer to read calibration texts with`);
  }
  const tokenizer = createTokenizer(checkpoint.tokenizer, checkpoint.generationConfig);
  const given = calibrationSequences(texts!, tokenizer, { tokens, sequenceLength, bos });
  return { given, samples, sequenceLength };
}
