/**
 * Tuning as the last part of a quantization: on what the store holds, from where a stopped run left it.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { openWasm } from "../../ops/wasm.ts";
import { firstToken, sampleText } from "../ownText.ts";
import { multiplicationRate } from "../sensitivity/cost.ts";
import { tuneSeconds } from "../tuning/cost.ts";
import { decodedWeights } from "../tuning/decoded.node.ts";
import type { TuneOptions, TuneResult } from "../tuning/options.ts";
import { Parameters } from "../tuning/parameters.ts";
import { HELD_OUT_TOKENS, holdOut, type TuneRequest } from "../tuning/sequences.ts";
import { readTuning, saveTuning } from "../tuning/state.node.ts";
import { initialState, tune } from "../tuning/tune.ts";
import { normSpecs } from "../weights.ts";
import type { TensorPlan } from "./plan.ts";
import type { Pool } from "./pool.node.ts";
import type { TensorStore } from "./store.node.ts";

export interface TunedRun {
  readonly checkpoint: Checkpoint;
  readonly decoder: DecoderSpec;
  readonly plan: TensorPlan;
  readonly store: TensorStore;
  readonly pool: Pool;
  /** The partial folder. */
  readonly folder: string;
  readonly options: TuneOptions;
  readonly request: TuneRequest;
  /** Shares of the phase done and in all, and the seconds that its pace promises. */
  readonly onProgress: (
    phase: "sample" | "tune",
    doing: string,
    done: number,
    total: number,
    secondsLeft: number | undefined,
  ) => void;
  readonly signal?: AbortSignal;
}

/** A tuned model before it is stored. */
export interface Tuned {
  readonly result: TuneResult;
  /** Puts scales and norm weights into the file. */
  store(): Promise<void>;
}

/** Seconds that tuning will take, from a short measurement of the machine. */
export async function expectedSeconds(
  decoder: DecoderSpec,
  { steps, tokens }: TuneRequest,
  threads: number,
): Promise<number> {
  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  try {
    return tuneSeconds(decoder, steps, tokens, HELD_OUT_TOKENS, await multiplicationRate(backend));
  } finally {
    backend.dispose();
  }
}

/** Takes back what a run that was killed while it stored its tuned model had written. */
export async function untune({ folder, decoder, checkpoint, store }: TunedRun): Promise<void> {
  const saved = await readTuning(folder);
  if (!saved) return;
  for (const [name, scales] of saved.scales) await store.replaceScales(name, scales);
  for (const { weight, size } of normSpecs(decoder)) {
    await store.replaceValues(weight, await checkpoint.tensors.get(weight)!.readRows(0, size));
  }
}

/** Tunes the quantized weights of the store, which stay as they are until {@link Tuned.store}. */
export async function tuneQuantized(run: TunedRun): Promise<Tuned> {
  const backend = await openWasm({ threads: run.pool.threads, spawn: spawnNodeWorker });
  try {
    return await tuneOn(backend, run);
  } finally {
    backend.dispose();
  }
}

async function tuneOn(backend: Backend, run: TunedRun): Promise<Tuned> {
  const { checkpoint, decoder, plan, store, pool, folder, options, request, signal } = run;
  const names = [...plan.keys()];
  const parameters = await Parameters.create(decoder, checkpoint, names);
  const saved = await readTuning(folder);
  const scales = new Map<string, Float32Array>();
  for (const name of parameters.names("scales")) scales.set(name, (await store.read(name)).scales);
  const samples = request.given ? undefined : (saved?.samples ?? (await sampled(backend, run)));
  const state = saved?.state ?? initialState(parameters.values.length);
  if (saved) parameters.values.set(saved.values);
  const save = () => saveTuning(folder, { state, values: parameters.values, scales, samples });
  if (!saved) await save();
  const decode = decodedWeights(
    pool,
    (name) => plan.get(name)!,
    (name) => store.read(name),
  );
  const { steps, tokens } = request;
  const report = paced(run);
  const models = { spec: decoder, original: checkpoint, quantized: { names, decode }, parameters };
  const result = await tune({
    ...{ ...models, backend, state, steps, tokens, signal, rate: options.rate, seed: options.seed },
    ...holdOut((request.given ?? samples)!),
    onStep: save,
    onProgress: (done, total) =>
      report("tune", `step ${Math.min(state.step + 1, steps)} of ${steps}`, done, total),
  });
  return {
    result,
    async store() {
      if (result.bestStep === 0) return;
      for (const [name, before] of scales) await store.replaceScales(name, parameters.scales(name, before));
      for (const name of parameters.names("norm")) {
        const tensor = checkpoint.tensors.get(name)!;
        const values = await tensor.readRows(0, tensor.shape[0]);
        await store.replaceValues(name, parameters.applyNorm(name, values));
      }
    },
  };
}

function sampled(backend: Backend, run: TunedRun): Promise<number[][]> {
  const { checkpoint, decoder: spec, options, request, signal } = run;
  const { seed = 0 } = options;
  const { samples: sequences, sequenceLength } = request;
  const first = firstToken(checkpoint);
  const report = paced(run);
  return sampleText({
    ...{ spec, checkpoint, backend, sequences, sequenceLength, first, seed, signal },
    onProgress: (done, total) => report("sample", "sampling text", done, total),
  });
}

/** Reports progress with the time that the pace so far leaves. */
function paced({ onProgress }: TunedRun) {
  let first: { readonly time: number; readonly done: number } | undefined;
  return (phase: "sample" | "tune", doing: string, done: number, total: number) => {
    const time = performance.now();
    first ??= { time, done };
    const pace = (done - first.done) / (time - first.time);
    onProgress(phase, doing, done, total, pace > 0 ? (total - done) / pace / 1000 : undefined);
  };
}
