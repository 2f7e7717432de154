import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { floatSchemeFor } from "../model.ts";
import { Runner } from "../runner.ts";
import { freeWeights, type LoadedWeights, loadWeights } from "../weights.ts";
import { gradientMultiplications, multiplicationRate, noiseMultiplications } from "./cost.ts";
import { gradientSensitivities } from "./gradient.ts";
import { noiseSensitivities } from "./noise.ts";
import type { SensitivityMethod, SensitivityPart } from "./options.ts";
import { sampleSequences } from "./samples.ts";

export interface SensitivityProgress {
  /** `sample`: the model makes up text; `measure`: it is run with its weights changed. */
  readonly phase: "sample" | "measure";
  /** Shares of the phase. */
  readonly done: number;
  readonly total: number;
  /** At first an estimate from a short measurement of the machine, later from the pace. */
  readonly secondsLeft: number;
}

export interface Measurement {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  /** Sequences to read; else the model makes up as many as asked. */
  readonly given: readonly (readonly number[])[] | undefined;
  readonly sequences: number;
  readonly sequenceLength: number;
  /** Token that a made-up sequence begins with. */
  readonly first: number;
  readonly method: SensitivityMethod;
  readonly norms: readonly number[];
  readonly seed: number;
  /** Sequences that are known already. */
  readonly from: number;
  readonly onProgress?: (progress: SensitivityProgress) => void;
  readonly signal?: AbortSignal;
}

/** Sequences decoded side by side. */
const SAMPLED_AT_ONCE = 16;

/** Measures on a backend that holds nothing else; gives a part whenever one is done. */
export async function* measureSensitivities(run: Measurement): AsyncGenerator<SensitivityPart> {
  const { spec, checkpoint, backend, method, norms, seed, signal } = run;
  const tokens = (run.sequences - run.from) * run.sequenceLength;
  const perToken =
    method === "noise" ? noiseMultiplications(spec, norms.length) : gradientMultiplications(spec);
  const expected = (tokens * perToken) / (await multiplicationRate(backend));
  const report = progressOf("measure", expected, run.onProgress);
  report(0, 1);
  const first = run.from / run.sequences;
  const onProgress = (done: number, total: number) => report(done / total - first, 1 - first);
  const common = { spec, checkpoint, backend, seed, onProgress, signal };
  const load = () => loadWeights(spec, checkpoint, backend, floatSchemeFor(spec));
  if (method === "noise") {
    const weights = await load();
    const sequences = run.given ?? (await sample(run, weights, expected));
    return yield* noiseSensitivities({ ...common, weights, sequences, norms }, run.from);
  }
  let sequences = run.given;
  if (!sequences) {
    const weights = await load();
    sequences = await sample(run, weights, expected);
    freeWeights(weights, backend);
  }
  yield* gradientSensitivities({ ...common, sequences }, run.from);
}

async function sample(run: Measurement, weights: LoadedWeights, later: number): Promise<number[][]> {
  const { spec, backend, sequenceLength: length, first, seed, signal } = run;
  const sequences = Math.min(SAMPLED_AT_ONCE, run.sequences);
  const reading = { activations: "float" } as const;
  const runner = new Runner(spec, weights, backend, {
    sequences,
    context: length,
    chunk: sequences,
    reading,
  });
  const report = progressOf("sample", 0, run.onProgress, later);
  const all: number[][] = [];
  try {
    for (let at = 0; at < run.sequences; at += sequences) {
      const onProgress = (done: number, total: number) =>
        report(at * total + sequences * done, run.sequences * total);
      all.push(
        ...(await sampleSequences(runner, { sequences, length, first, seed: seed + at, onProgress, signal })),
      );
    }
  } finally {
    runner.dispose();
  }
  return all.slice(0, run.sequences);
}

/** Adds the time that is left: `expected` before the first step, then what the pace promises, and `later` besides. */
function progressOf(
  phase: SensitivityProgress["phase"],
  expected: number,
  onProgress: Measurement["onProgress"],
  later = 0,
): (done: number, total: number) => void {
  let started = performance.now();
  return (done, total) => {
    if (done === 0) started = performance.now();
    const seconds = (performance.now() - started) / 1000;
    const left = done > 0 ? (seconds * (total - done)) / done : expected;
    onProgress?.({ phase, done, total, secondsLeft: left + later });
  };
}
