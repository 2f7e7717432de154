import { availableParallelism } from "node:os";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { writeModelFiles } from "../../checkpoint/modelFiles.node.ts";
import { createFolder, requireFree } from "../../checkpoint/outputFolder.node.ts";
import { entryBytes, type TensorEntry } from "../../checkpoint/safetensors/header.ts";
import { filesByteLength } from "../../checkpoint/safetensors/shards.ts";
import { createModelSafetensors } from "../../checkpoint/safetensors/writer.node.ts";
import { elementsOf } from "../../checkpoint/shape.ts";
import { MemoryError, UsageError } from "../../errors.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { openWasm } from "../../ops/wasm.ts";
import { balanceCheckpoint } from "../balance/balance.node.ts";
import { type CalibrationRequest, calibrationRequest } from "../calibrate/request.ts";
import { firstToken, sampleText } from "../ownText.ts";
import { tuneRequest } from "../tuning/sequences.ts";
import { removeTuning } from "../tuning/state.node.ts";
import { linearSpecs } from "../weights.ts";
import { quantizeLayers, weightsOf } from "./calibrated.node.ts";
import { configOf, requestOf } from "./describe.node.ts";
import { keptTensors, storedEntries } from "./entries.ts";
import { journalMatches, openJournal } from "./journal.node.ts";
import { floatDecoder, planTensors, type TensorPlan } from "./plan.ts";
import { createPool, type Pool } from "./pool.node.ts";
import { type WrittenResidual, writeResidual } from "./residual.node.ts";
import { quantizeTensors } from "./round.node.ts";
import type { QuantizeProgress, QuantizeResult, QuantizeRun } from "./run.ts";
import { TensorStore } from "./store.node.ts";
import { expectedSeconds, type Tuned, type TunedRun, tuneQuantized, untune } from "./tuned.node.ts";

/**
 * Quantizes a checkpoint into a new folder, a few rows at a time. The folder appears when it is complete; a run
 * that was killed or aborted is continued by the next one with the same options. Any other failure leaves nothing.
 *
 * Throws a UsageError when the checkpoint is quantized already, the folder exists and is not empty, or options do not fit
 * the model or each other; an UnsupportedError for an architecture that is not known; a CheckpointError for damaged files.
 *
 * @param folder where to write a Hugging Face folder that `load` reads
 *
 * @example
 * const checkpoint = await openCheckpoint("./model");
 * await quantizeCheckpoint(checkpoint, "./model-4bit", { scheme: "nuq-4", calibrate: {} });
 * await checkpoint.close();
 */
export async function quantizeCheckpoint(
  original: Checkpoint,
  folder: string,
  run: QuantizeRun,
): Promise<QuantizeResult> {
  const started = performance.now();
  if (run.tune && run.residual) {
    throw new UsageError(
      "a tuned model's norms do not fit the original weights that a residual restores; choose one",
    );
  }
  const plan = planTensors(original, run);
  const decoder = floatDecoder(original);
  const calibration = run.calibrate && calibrationRequest(original, decoder, run.calibrate);
  const tuning = run.tune && tuneRequest(original, decoder, run.tune, run.calibrate);
  const rounds = linearSpecs(decoder).some(({ weight }) => plan.has(weight));
  const checkpoint = rounds ? await balanced(original, folder, run) : original;
  const tensors = keptTensors(checkpoint);
  const entries = tensors.flatMap((tensor) => storedEntries(tensor, plan));
  const total = sum(tensors.map(({ shape }) => elementsOf(shape)));
  const request = requestOf(checkpoint, tensors, plan, run, calibration, tuning);
  const { resume = true } = run;
  const output = await createFolder(folder, {
    resume: async (path) => resume && (await journalMatches(path, request)),
  });
  let store: TensorStore | undefined;
  let pool: Pool | undefined;
  let residual: WrittenResidual | undefined;
  let tuned: Tuned | undefined;
  try {
    await writeModelFiles(output.path, checkpoint, configOf(checkpoint, plan, run));
    const journal = await openJournal(output.path, request, output.resumed);
    const writer = await createModelSafetensors(output.path, entries, { resume: output.resumed });
    const progress = progressOf(total, run);
    store = new TensorStore(writer, journal, plan, progress);
    pool = createPool(run.threads ?? availableParallelism());
    const tunedRun = tuning && {
      ...{ checkpoint, decoder, plan, store, pool, folder: output.path, signal: run.signal },
      ...{ options: run.tune!, request: tuning, onProgress: tuneProgressOf(run) },
    };
    if (tunedRun) {
      tunedRun.onProgress("tune", "", 0, 1, await expectedSeconds(decoder, tuning, pool.threads));
      if (output.resumed) await untune(tunedRun);
    }
    const calibrated = calibration ? decoder.layers.flatMap((_, index) => weightsOf(decoder, index)) : [];
    const later = new Set(calibrated.filter((name) => plan.has(name)));
    const now = tensors.filter(({ name }) => !later.has(name));
    await quantizeTensors(now, plan, store, pool, run.signal);
    if (calibration) await calibrate(checkpoint, decoder, plan, calibration, store, pool, run);
    if (tunedRun) tuned = await tuneQuantized(tunedRun);
    if (run.residual) {
      const written = store;
      residual = await writeResidual({
        ...{ decoder, original: checkpoint, plan, folder: output.path, bits: run.residual, pool },
        ...{ signal: run.signal, onProgress: (group) => progress("residual", group, total, 0) },
        quantized: (weight) => written.read(weight),
      });
    }
    await tuned?.store();
    if (tuned || residual) {
      const config = configOf(checkpoint, plan, run, tuned?.result, residual?.checksum);
      await writeModelFiles(output.path, checkpoint, config);
    }
    await writer.finish();
    if (tuned) await removeTuning(output.path);
    await journal.finish();
    await output.finish();
  } catch (error) {
    if (resume && store && run.signal?.aborted) await store.suspend();
    else {
      await store?.abort();
      await output.abort();
    }
    throw error;
  } finally {
    await pool?.close();
  }
  return {
    ...summary(folder, tensors, plan, entries, started),
    ...{ balanced: checkpoint.balance !== undefined, residualBytes: residual?.bytes, tuning: tuned?.result },
  };
}

/** The checkpoint as it is to be rounded. */
async function balanced(
  checkpoint: Checkpoint,
  folder: string,
  { calibrate, balance, residual, channels, threads, onProgress, onNotice, signal }: QuantizeRun,
): Promise<Checkpoint> {
  const compensated = calibrate?.compensation;
  if (!(balance ?? (!calibrate || compensated !== undefined))) return checkpoint;
  await requireFree(folder);
  try {
    return await balanceCheckpoint(checkpoint, {
      ...{ compensation: residual && { channels: compensated?.channels ?? channels }, threads, signal },
      onProgress: (done, total) =>
        onProgress?.({
          ...{ phase: "balance", tensor: "", done, total },
          ...{ weightsPerSecond: undefined, secondsLeft: undefined },
        }),
    });
  } catch (error) {
    if (balance !== undefined || !(error instanceof MemoryError)) throw error;
    onNotice?.(`not balanced: ${error.message}`);
    return checkpoint;
  }
}

function summary(
  folder: string,
  tensors: readonly Tensor[],
  plan: TensorPlan,
  entries: readonly TensorEntry[],
  started: number,
): Omit<QuantizeResult, "balanced"> {
  const total = sum(tensors.map(({ shape }) => elementsOf(shape)));
  const bytesAfter = sum(entries.map(entryBytes));
  const linear = tensors.filter(({ name }) => plan.has(name) && !/embed_tokens|lm_head/.test(name));
  const linearBytes = sum(linear.flatMap((tensor) => storedEntries(tensor, plan).map(entryBytes)));
  return {
    folder,
    quantizedWeights: sum([...plan.values()].map(({ shape }) => elementsOf(shape))),
    weights: total,
    bitsPerWeight: (8 * bytesAfter) / total,
    linearBitsPerWeight: (8 * linearBytes) / sum(linear.map(({ shape }) => elementsOf(shape))),
    bytesBefore: sum(tensors.map(({ byteLength }) => byteLength)),
    bytesAfter,
    fileBytes: filesByteLength(entries),
    seconds: (performance.now() - started) / 1000,
  };
}

async function calibrate(
  checkpoint: Checkpoint,
  decoder: DecoderSpec,
  plan: TensorPlan,
  { given, samples, sequenceLength }: CalibrationRequest,
  store: TensorStore,
  pool: Pool,
  run: QuantizeRun,
): Promise<void> {
  const backend = await openWasm({ threads: pool.threads, spawn: spawnNodeWorker });
  try {
    const { signal } = run;
    const onProgress = (done: number, total: number) =>
      store.progress("sample", `sampling text, ${Math.floor((100 * done) / total)}%`);
    // A run that goes on draws the same anew: always from one seed.
    const own = { sequences: samples, sequenceLength, first: firstToken(checkpoint), seed: 0 };
    const sampled = () => sampleText({ spec: decoder, checkpoint, backend, ...own, onProgress, signal });
    const sequences = given ?? (await sampled());
    await quantizeLayers({
      ...{ decoder, checkpoint, backend, pool, plan, sequences, store, signal },
      options: run.calibrate!,
    });
  } finally {
    backend.dispose();
  }
}

/**
 * Passes progress on, with the pace: that of calibrated layers once they begin, and never of what an earlier run did.
 */
function progressOf(total: number, { onProgress }: QuantizeRun) {
  let first: { time: number; done: number; resumed: number } | undefined;
  let calibrating = false;
  return (phase: QuantizeProgress["phase"], tensor: string, done: number, resumed: number) => {
    const time = performance.now();
    const calibrationStarts = phase === "observe" && !calibrating;
    calibrating ||= calibrationStarts;
    if (calibrationStarts || resumed !== first?.resumed) first = undefined;
    first ??= { time, done, resumed };
    const seconds = (time - first.time) / 1000;
    const weightsPerSecond =
      done > first.done && phase !== "sample" ? (done - first.done) / seconds : undefined;
    const secondsLeft = weightsPerSecond && (total - done) / weightsPerSecond;
    onProgress?.({ phase, tensor, done, total, weightsPerSecond, secondsLeft });
  };
}

function tuneProgressOf({ onProgress }: QuantizeRun): TunedRun["onProgress"] {
  return (phase, tensor, done, total, secondsLeft) =>
    onProgress?.({ phase, tensor, done, total, secondsLeft, weightsPerSecond: undefined });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
