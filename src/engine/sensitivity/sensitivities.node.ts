import { availableParallelism } from "node:os";
import type { Backend } from "../../backends/backend.ts";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { openWasm } from "../../ops/wasm.ts";
import { createTokenizer } from "../../text/tokenizer.ts";
import type { InputGram } from "../calibrate/layerPass.ts";
import {
  DEFAULT_SEQUENCE_LENGTH as DEFAULT_CALIBRATION_LENGTH,
  DEFAULT_OWN_TOKENS,
} from "../calibrate/options.ts";
import { calibrationSequences } from "../calibrate/sequences.ts";
import { sampleText } from "../ownText.ts";
import { createPool } from "../quantize/pool.node.ts";
import type { Sequences } from "../sequences.ts";
import { openCache } from "./cache.node.ts";
import { calibrationGains } from "./gains.ts";
import { measureSensitivities, progressOf, type SensitivityProgress } from "./measure.ts";
import type { Sensitivities, SensitivityOptions } from "./options.ts";
import { requestOf, type SensitivityRequest, wordsOf } from "./request.ts";
import { summarizeParts } from "./summary.ts";
import { weightTensors } from "./tensors.ts";

export interface SensitivityRun extends SensitivityOptions {
  /** Measure too what calibration leaves of each tensor's loss. Default false. */
  readonly gains?: boolean;
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
  const request = requestOf(checkpoint, run);
  const tensors = weightTensors(request.spec);
  const names = tensors.map(({ name }) => name);
  const cache = await openCache(checkpoint, wordsOf(request), names, run.cacheFolder);
  const wantsParts = cache.parts.length < request.sequences;
  const wantsGains = run.gains === true && cache.gains === undefined;
  if (wantsParts || wantsGains) {
    const sequences = wantsGains ? samplesWithGains(request) : request.sequences;
    await withSequences(checkpoint, { ...request, sequences }, run, async (backend, all) => {
      const sequences = all.slice(0, request.sequences);
      const common = { checkpoint, backend, ...request, sequences };
      if (wantsParts) {
        const { onProgress, signal } = run;
        const from = cache.parts.length;
        for await (const part of measureSensitivities({ ...common, from, onProgress, signal })) {
          await cache.add(part);
        }
      }
      if (wantsGains) {
        const gains = await measureGains(
          { ...common, sequences: gainSequences(checkpoint, request, run) ?? all },
          run,
        );
        await cache.setGains(names.map((name) => gains.get(name) ?? 1));
      }
    });
  }
  return {
    method: request.method,
    data: request.given ? "texts" : "samples",
    tokens: cache.parts.reduce((sum, { tokens }) => sum + tokens, 0),
    layers: summarizeParts(tensors, cache.parts, run.gains ? cache.gains : undefined),
  };
}

/** Opens a backend for `work` over the sequences that a request asks for. */
export async function withSequences(
  checkpoint: Checkpoint,
  request: SensitivityRequest,
  { threads = availableParallelism(), onProgress, signal }: SensitivityRun,
  work: (backend: Backend, sequences: Sequences) => Promise<void>,
): Promise<void> {
  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  try {
    const report = progressOf("sample", 0, onProgress);
    const sampled = () => sampleText({ checkpoint, backend, ...request, onProgress: report, signal });
    await work(backend, request.given ?? (await sampled()));
  } finally {
    backend.dispose();
  }
}

/** Hessians need more tokens than gradients: of texts, and of the model's own what calibration takes of it. */
const GAIN_TOKENS = 16_384;

function samplesWithGains({ sequences, sequenceLength }: SensitivityRequest): number {
  return Math.max(sequences, Math.ceil(DEFAULT_OWN_TOKENS / sequenceLength));
}

/** Undefined where no texts are given. */
function gainSequences(
  { tokenizer, generationConfig }: Checkpoint,
  { spec }: SensitivityRequest,
  { texts, ids, bos }: SensitivityRun,
): Sequences | undefined {
  if (ids || !texts || !tokenizer) return undefined;
  const sequenceLength = Math.min(DEFAULT_CALIBRATION_LENGTH, spec.contextLength);
  const options = { tokens: GAIN_TOKENS, sequenceLength, bos };
  return calibrationSequences(texts, createTokenizer(tokenizer, generationConfig), options);
}

async function measureGains(
  common: Pick<Parameters<typeof calibrationGains>[0], "spec" | "checkpoint" | "backend" | "sequences">,
  { threads = availableParallelism(), onProgress, signal }: SensitivityRun,
): Promise<Map<string, number>> {
  const pool = createPool(threads);
  try {
    // As calibrated quantization does by default, with blocks of 16 columns.
    const options = { rotation: 0, blockColumns: 16, damping: 0.03, activationOrder: true };
    const gainOf = async ({ sums, columns }: InputGram) => {
      const { factor } = await pool.run({ kind: "prepare", sums, columns, ...options });
      return factor.gain;
    };
    const report = progressOf("gains", 0, onProgress);
    return await calibrationGains({ ...common, gainOf, onProgress: report, signal });
  } finally {
    await pool.close();
  }
}
