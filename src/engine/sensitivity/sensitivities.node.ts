import { availableParallelism } from "node:os";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { quantizationOf } from "../../checkpoint/quantization.ts";
import { UsageError } from "../../errors.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { decoderFor } from "../../models/registry.ts";
import { openWasm } from "../../ops/wasm.ts";
import { createTokenizer } from "../../text/tokenizer.ts";
import { calibrationSequences } from "../calibrate/sequences.ts";
import { tieMissingHead } from "../weights.ts";
import { openCache } from "./cache.node.ts";
import { measureSensitivities, type SensitivityProgress } from "./measure.ts";
import {
  DEFAULT_NORMS,
  DEFAULT_SEQUENCE_LENGTH,
  DEFAULT_SEQUENCES,
  type Sensitivities,
  type SensitivityOptions,
} from "./options.ts";
import { summarizeParts } from "./summary.ts";
import { weightTensors } from "./tensors.ts";

export interface SensitivityRun extends SensitivityOptions {
  /** Threads that compute; the result does not depend on it. Default all cores. */
  readonly threads?: number;
  /** Folder of the cache; default beside the model, or the user's cache. */
  readonly cacheFolder?: string;
  readonly onProgress?: (progress: SensitivityProgress) => void;
  readonly signal?: AbortSignal;
}

/**
 * How much each weight tensor of a float model matters: linear layers, embedding and head. What was measured before
 * with the same options is read from the cache; a run that was stopped goes on where it was.
 * Throws a UsageError for a quantized model, and for options outside their ranges.
 *
 * @example
 * const { layers } = await sensitivities(await openCheckpoint("./model"));
 * const predictedLoss = layers.reduce((sum, { name, sensitivity }) => sum + sensitivity * distortion[name], 0);
 */
export async function sensitivities(
  checkpoint: Checkpoint,
  run: SensitivityRun = {},
): Promise<Sensitivities> {
  if (quantizationOf(checkpoint)) {
    throw new UsageError(`${checkpoint.source}: is quantized already; measure the float model`);
  }
  const { source, config, tensors: stored } = checkpoint;
  const spec = tieMissingHead(decoderFor(source, config, stored), checkpoint);
  const asked = requestOf(spec, run);
  const given = givenSequences(checkpoint, run, asked);
  if (given) checkSequences(given, spec);
  const request = { ...asked, sequences: given?.length ?? asked.sequences };
  const tensors = weightTensors(spec);
  const words = { ...request, data: given ? "texts" : "samples", ids: given };
  const names = tensors.map(({ name }) => name);
  const cache = await openCache(checkpoint, words, names, run.cacheFolder);
  if (cache.parts.length < request.sequences) {
    const threads = run.threads ?? availableParallelism();
    const backend = await openWasm({ threads, spawn: spawnNodeWorker });
    try {
      const parts = measureSensitivities({
        ...{ spec, checkpoint, backend, ...request, given, first: firstToken(checkpoint) },
        ...{ from: cache.parts.length, onProgress: run.onProgress, signal: run.signal },
      });
      for await (const part of parts) await cache.add(part);
    } finally {
      backend.dispose();
    }
  }
  return {
    method: request.method,
    data: given ? "texts" : "samples",
    tokens: cache.parts.reduce((sum, { tokens }) => sum + tokens, 0),
    layers: summarizeParts(tensors, cache.parts),
  };
}

/** The options, complete and checked. */
function requestOf(spec: DecoderSpec, run: SensitivityRun) {
  const { method = "gradient", sequences = DEFAULT_SEQUENCES, norms = DEFAULT_NORMS, seed = 0 } = run;
  const { sequenceLength = Math.min(DEFAULT_SEQUENCE_LENGTH, spec.contextLength) } = run;
  const whole = (name: string, value: number, most: number) => {
    if (Number.isInteger(value) && value >= 1 && value <= most) return;
    throw new UsageError(`${name} ${value}: takes a whole number from 1 to ${most}`);
  };
  whole("sequences", sequences, 65_536);
  whole("sequenceLength", sequenceLength, spec.contextLength);
  if (norms.length === 0 || norms.some((norm) => !(norm > 0 && norm <= 1))) {
    throw new UsageError(`norms ${norms.join(", ")}: takes numbers above 0, at most 1`);
  }
  return { method, sequences, sequenceLength, norms, seed };
}

function givenSequences(
  checkpoint: Checkpoint,
  { texts, ids }: SensitivityOptions,
  { sequences, sequenceLength }: { readonly sequences: number; readonly sequenceLength: number },
): readonly (readonly number[])[] | undefined {
  if (ids || !texts) return ids;
  if (!checkpoint.tokenizer) {
    throw new UsageError(`${checkpoint.source}: has no tokenizer to read texts with`);
  }
  const tokenizer = createTokenizer(checkpoint.tokenizer, checkpoint.generationConfig);
  return calibrationSequences(texts, tokenizer, { tokens: sequences * sequenceLength, sequenceLength });
}

function checkSequences(sequences: readonly (readonly number[])[], spec: DecoderSpec): void {
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

/** The beginning of a sequence that a model makes up. */
export function firstToken({ tokenizer, generationConfig }: Checkpoint): number {
  if (!tokenizer) return 0;
  const { bosId, eosIds } = createTokenizer(tokenizer, generationConfig);
  return bosId ?? [...eosIds][0] ?? 0;
}
