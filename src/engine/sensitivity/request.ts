import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { UsageError } from "../../errors.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { createTokenizer } from "../../text/tokenizer.ts";
import { calibrationSequences } from "../calibrate/sequences.ts";
import { firstToken } from "../ownText.ts";
import { floatDecoder } from "../quantize/plan.ts";
import type { Sequences } from "../sequences.ts";
import { checkWhole } from "../wholeNumber.ts";
import {
  DEFAULT_NORMS,
  DEFAULT_SEQUENCE_LENGTH,
  DEFAULT_SEQUENCES,
  type SensitivityMethod,
  type SensitivityOptions,
} from "./options.ts";

/** What is to be measured, complete and checked. */
export interface SensitivityRequest {
  readonly spec: DecoderSpec;
  readonly method: SensitivityMethod;
  readonly sequences: number;
  readonly sequenceLength: number;
  readonly norms: readonly number[];
  readonly seed: number;
  /** Sequences to read; else the model makes up as many as asked, each after `first`. */
  readonly given: Sequences | undefined;
  readonly first: number;
}

/** Fills in defaults. Throws a UsageError for a quantized model, and for options outside their ranges. */
export function requestOf(checkpoint: Checkpoint, options: SensitivityOptions): SensitivityRequest {
  const spec = floatDecoder(checkpoint);
  const numbers = checkedNumbers(spec, options);
  const given = givenSequences(checkpoint, options, numbers);
  if (given) checkSequences(given, spec);
  const { method = "gradient" } = options;
  const sequences = given?.length ?? numbers.sequences;
  return { spec, method, ...numbers, sequences, given, first: firstToken(checkpoint) };
}

/** All that a measurement depends on besides the model, for the cache. */
export function wordsOf({ spec: _, given, first, ...numbers }: SensitivityRequest): Record<string, unknown> {
  return { ...numbers, ...(given ? { data: "texts", ids: given } : { data: "samples", first }) };
}

function checkedNumbers(spec: DecoderSpec, options: SensitivityOptions) {
  const { sequences = DEFAULT_SEQUENCES, norms = DEFAULT_NORMS, seed = 0 } = options;
  const { sequenceLength = Math.min(DEFAULT_SEQUENCE_LENGTH, spec.contextLength) } = options;
  checkWhole("sequences", sequences, 65_536);
  checkWhole("sequenceLength", sequenceLength, spec.contextLength);
  if (norms.length === 0 || norms.some((norm) => !(norm > 0 && norm <= 1))) {
    throw new UsageError(`norms ${norms.join(", ")}: takes numbers above 0, at most 1`);
  }
  return { sequences, sequenceLength, norms, seed };
}

function givenSequences(
  checkpoint: Checkpoint,
  { texts, ids, bos }: SensitivityOptions,
  { sequences, sequenceLength }: { readonly sequences: number; readonly sequenceLength: number },
): Sequences | undefined {
  if (ids || !texts) return ids;
  if (!checkpoint.tokenizer) {
    throw new UsageError(`${checkpoint.source}: has no tokenizer to read texts with`);
  }
  const tokenizer = createTokenizer(checkpoint.tokenizer, checkpoint.generationConfig);
  return calibrationSequences(texts, tokenizer, { tokens: sequences * sequenceLength, sequenceLength, bos });
}

function checkSequences(sequences: Sequences, spec: DecoderSpec): void {
  const { contextLength, vocabularySize } = spec;
  for (const [s, ids] of sequences.entries()) {
    if (ids.length < 1 || ids.length > contextLength) {
      throw new UsageError(`sequence ${s} has ${ids.length} tokens; this model takes 1 to ${contextLength}`);
    }
    const wrong = ids.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocabularySize));
    if (wrong !== undefined) {
      throw new UsageError(`sequence ${s} has token ${wrong}, outside the vocabulary of ${vocabularySize}`);
    }
  }
  if (sequences.length === 0) throw new UsageError("there are no sequences to read; give at least one");
}
