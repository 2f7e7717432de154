import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { floatSchemeFor } from "../model.ts";
import { Runner } from "../runner.ts";
import { freeWeights, loadWeights } from "../weights.ts";
import { gradientMultiplications, multiplicationRate, noiseMultiplications } from "./cost.ts";
import { gradientSensitivities } from "./gradient.ts";
import { noiseSensitivities } from "./noise.ts";
import type { SensitivityMethod, SensitivityPart } from "./options.ts";
import { sampleSequences } from "./samples.ts";

export interface SensitivityProgress {
  /** `sample`: the model makes up text; `measure`: the sensitivities; `gains`: what calibration leaves. */
  readonly phase: "sample" | "measure" | "gains";
  /** Shares of the phase. */
  readonly done: number;
  readonly total: number;
  /** Of the phase: of `measure` at first an estimate from a short measurement of the machine, later from the pace. */
  readonly secondsLeft: number;
}

interface Common {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly sequenceLength: number;
  readonly seed: number;
  readonly onProgress?: (progress: SensitivityProgress) => void;
  readonly signal?: AbortSignal;
}

export interface Measurement extends Common {
  readonly method: SensitivityMethod;
  readonly sequences: readonly (readonly number[])[];
  readonly norms: readonly number[];
  /** Sequences that are known already. */
  readonly from: number;
}

export interface Sampling extends Common {
  readonly sequences: number;
  /** Token that a sequence begins with. */
  readonly first: number;
}

/** Sequences decoded side by side. */
const SAMPLED_AT_ONCE = 16;

/** Measures on a backend that holds nothing else; gives a part whenever one is done. */
export async function* measureSensitivities(run: Measurement): AsyncGenerator<SensitivityPart> {
  const { spec, checkpoint, backend, method, sequences, from, norms, seed, signal } = run;
  const tokens = sequences.slice(from).reduce((sum, { length }) => sum + length, 0);
  const perToken =
    method === "noise" ? noiseMultiplications(spec, norms.length) : gradientMultiplications(spec);
  const expected = (tokens * perToken) / (await multiplicationRate(backend));
  const report = progressOf("measure", expected, run.onProgress);
  report(0, 1);
  const first = from / sequences.length;
  const onProgress = (done: number, total: number) => report(done / total - first, 1 - first);
  const common = { spec, checkpoint, backend, sequences, seed, onProgress, signal };
  if (method === "gradient") return yield* gradientSensitivities(common, from);
  const weights = await loadWeights(spec, checkpoint, backend, floatSchemeFor(spec));
  try {
    yield* noiseSensitivities({ ...common, weights, norms }, from);
  } finally {
    freeWeights(weights, backend);
  }
}

/** Sequences that the model makes up. */
export async function sampleText(run: Sampling): Promise<number[][]> {
  const { spec, checkpoint, backend, sequenceLength: length, first, seed, signal } = run;
  const weights = await loadWeights(spec, checkpoint, backend, floatSchemeFor(spec));
  const sequences = Math.min(SAMPLED_AT_ONCE, run.sequences);
  const reading = { activations: "float" } as const;
  const shape = { sequences, context: length, chunk: sequences };
  const runner = new Runner(spec, weights, backend, { ...shape, reading });
  const report = progressOf("sample", 0, run.onProgress);
  const all: number[][] = [];
  try {
    for (let at = 0; at < run.sequences; at += sequences) {
      const onProgress = (done: number, total: number) =>
        report(at * total + sequences * done, run.sequences * total);
      const options = { sequences, length, first, seed: seed + at, onProgress, signal };
      all.push(...(await sampleSequences(runner, options)));
    }
  } finally {
    runner.dispose();
    freeWeights(weights, backend);
  }
  return all.slice(0, run.sequences);
}

/** Adds the time that is left: `expected` before the first step, then what the pace promises. */
export function progressOf(
  phase: SensitivityProgress["phase"],
  expected: number,
  onProgress: Common["onProgress"],
): (done: number, total: number) => void {
  const started = performance.now();
  return (done, total) => {
    const seconds = (performance.now() - started) / 1000;
    onProgress?.({
      phase,
      done,
      total,
      secondsLeft: done > 0 ? (seconds * (total - done)) / done : expected,
    });
  };
}
