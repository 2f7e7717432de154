import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { floatSchemeFor } from "../model.ts";
import { type Sequences, tokensOf } from "../sequences.ts";
import { freeWeights, loadWeights } from "../weights.ts";
import { gradientMultiplications, multiplicationRate, noiseMultiplications } from "./cost.ts";
import { gradientSensitivities } from "./gradient.ts";
import { noiseSensitivities } from "./noise.ts";
import type { SensitivityMethod, SensitivityPart } from "./options.ts";

export interface SensitivityProgress {
  /** `sample`: the model makes up text; `measure`: the sensitivities; `gains`: what calibration leaves. */
  readonly phase: "sample" | "measure" | "gains";
  /** Shares of the phase. */
  readonly done: number;
  readonly total: number;
  /** Of the phase: of `measure` at first an estimate from a short measurement of the machine, later from the pace. */
  readonly secondsLeft: number;
}

export interface Measurement {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly seed: number;
  readonly onProgress?: (progress: SensitivityProgress) => void;
  readonly signal?: AbortSignal;
  readonly method: SensitivityMethod;
  readonly sequences: Sequences;
  readonly norms: readonly number[];
  /** Sequences that are known already. */
  readonly from: number;
}

/** Measures on a backend that holds nothing else; gives a part whenever one is done. */
export async function* measureSensitivities(run: Measurement): AsyncGenerator<SensitivityPart> {
  const { spec, checkpoint, backend, method, sequences, from, norms, seed, signal } = run;
  const tokens = tokensOf(sequences.slice(from));
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

/** Adds the time that is left: `expected` before the first step, then what the pace promises. */
export function progressOf(
  phase: SensitivityProgress["phase"],
  expected: number,
  onProgress: Measurement["onProgress"],
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
