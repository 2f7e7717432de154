/**
 * Tuning after quantization: row scales and norm weights by gradient descent on the Kullback-Leibler divergence of the
 * predictions from the float model's. Codes stay, so it costs no bits.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { decoderGradient, sequencesAtOnce } from "../gradient/decoder.ts";
import { LogitsOf } from "../gradient/logits.ts";
import { longestOf, type Sequences, tokensOf } from "../sequences.ts";
import { adamStep, type Moments, rateAt } from "./adam.ts";
import { divergenceLoss, meanDivergence } from "./divergence.ts";
import { DEFAULT_TUNE_RATE, type TuneResult } from "./options.ts";
import type { Parameters } from "./parameters.ts";
import { readingOrder } from "./schedule.ts";
import { ParameterGradient, type QuantizedWeights, studentCheckpoint } from "./student.ts";
import { Teacher } from "./teacher.ts";

/** Steps between measurements on held-out tokens. */
export const MEASURE_EVERY = 10;

/** Where tuning stands after a step. */
export interface TuneState {
  step: number;
  readonly moments: Moments;
  /** Divergence on held-out tokens before the first step, once measured. */
  before?: number;
  /** The best parameters so far, after which step they were found, and their divergence on held-out tokens. */
  best?: BestParameters;
}

export interface BestParameters {
  readonly step: number;
  readonly divergence: number;
  readonly values: Float64Array;
}

export interface TuneRun {
  readonly spec: DecoderSpec;
  readonly original: Checkpoint;
  readonly quantized: QuantizedWeights;
  /** Where `state` left them; the best ones found in the end. */
  readonly parameters: Parameters;
  readonly backend: Backend;
  readonly training: Sequences;
  readonly heldOut: Sequences;
  readonly steps: number;
  /** Tokens of a step. */
  readonly tokens: number;
  readonly rate?: number;
  readonly seed?: number;
  readonly state: TuneState;
  /** Called whenever the state has changed. */
  readonly onStep?: () => Promise<void>;
  /** `done` of `total` steps, measurements counted as what they take. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** A state before the first step, for so many parameters. */
export function initialState(parameters: number): TuneState {
  const zeros = () => new Float64Array(parameters);
  return { step: 0, moments: { first: zeros(), second: zeros() } };
}

/** Tunes parameters, and leaves the best that it measured in them: never worse than before. */
export async function tune(run: TuneRun): Promise<TuneResult> {
  const { spec, original, backend, training, heldOut } = run;
  const longest = longestOf([...training, ...heldOut]);
  const teacher = await LogitsOf.load(spec, original, backend, longest);
  try {
    return await descend(run, new Tuner(run, teacher));
  } finally {
    teacher.free();
  }
}

async function descend(run: TuneRun, tuner: Tuner): Promise<TuneResult> {
  const { parameters, state, steps, training, heldOut } = run;
  if (state.best === undefined) {
    const divergence = await tuner.measure();
    state.before = divergence;
    state.best = { step: 0, divergence, values: parameters.values.slice() };
    await run.onStep?.();
  }
  while (state.step < steps) {
    await tuner.step();
    if (state.step % MEASURE_EVERY === 0 || state.step === steps) {
      const divergence = await tuner.measure();
      if (divergence < state.best.divergence) {
        state.best = { step: state.step, divergence, values: parameters.values.slice() };
      }
    }
    await run.onStep?.();
  }
  const { best } = state;
  parameters.values.set(best.values);
  return {
    divergenceBefore: state.before!,
    divergenceAfter: best.divergence,
    bestStep: best.step,
    trainingTokens: tokensOf(training),
    heldOutTokens: tokensOf(heldOut),
  };
}

class Tuner {
  readonly #run: TuneRun;
  readonly #student: Checkpoint;
  readonly #teacher: Teacher;
  readonly #logits: LogitsOf;
  /** Sequences of a step. */
  readonly #perStep: number;
  /** Sequences of all steps, by number. */
  readonly #order: readonly number[];
  /** What a measurement takes, in steps: a run forth instead of two and one back. */
  readonly #measurement: number;
  #done: number;

  /** @param logits of the float model. */
  constructor(run: TuneRun, logits: LogitsOf) {
    const { spec, original, parameters, quantized, training, heldOut, tokens, state } = run;
    this.#run = run;
    this.#logits = logits;
    this.#student = studentCheckpoint(original, parameters, quantized);
    this.#teacher = new Teacher(spec, original, run.backend, [...training, ...heldOut]);
    const mean = tokensOf(training) / training.length;
    this.#perStep = Math.min(training.length, Math.max(1, Math.round(tokens / mean)));
    this.#order = readingOrder(run.steps * this.#perStep, training.length, run.seed ?? 0);
    this.#measurement = tokensOf(heldOut) / (this.#perStep * mean) / 4;
    this.#done = this.#work(state.step) - (state.best === undefined ? this.#measurement : 0);
  }

  async step(): Promise<void> {
    const { spec, original, parameters, backend, training, steps, state, signal } = this.#run;
    const { rate = DEFAULT_TUNE_RATE } = this.#run;
    const at = state.step * this.#perStep;
    const numbers = this.#order.slice(at, at + this.#perStep);
    const sequences = numbers.map((s) => training[s]);
    const streams = await this.#teacher.streams(numbers, this.#order.slice(at + this.#perStep), signal);
    const gradient = new Float64Array(parameters.values.length);
    const batch = sequencesAtOnce(spec, sequences);
    for (let first = 0; first < sequences.length; first += batch) {
      const part = sequences.slice(first, first + batch);
      const observer = new ParameterGradient(original, parameters);
      const loss = divergenceLoss(spec, this.#logits, streams.slice(first), 1 / tokensOf(sequences));
      const pass = { spec, checkpoint: this.#student, backend, sequences: part, loss, observer, signal };
      const onProgress = this.#progress(part.length / sequences.length, first / sequences.length);
      await decoderGradient({ ...pass, onProgress });
      for (const [i, value] of observer.sum.entries()) gradient[i] += value;
    }
    state.step++;
    adamStep(parameters.values, gradient, state.moments, state.step, rate * rateAt(state.step, steps));
    this.#done = this.#work(state.step - 1) + 1;
  }

  /** The divergence on held-out tokens. */
  async measure(): Promise<number> {
    const { spec, backend, training, heldOut, signal } = this.#run;
    const numbers = heldOut.map((_, s) => training.length + s);
    const streams = await this.#teacher.streams(numbers, [], signal);
    const models = { teacher: this.#logits, student: this.#student };
    const onProgress = this.#progress(this.#measurement);
    const found = await meanDivergence({
      ...{ spec, backend, ...models, sequences: heldOut, streams, onProgress, signal },
    });
    this.#done += this.#measurement;
    return found;
  }

  /** Steps' worth of work up to the end of a step, its measurement included. */
  #work(step: number): number {
    const { steps } = this.#run;
    const measured = 1 + Math.floor(step / MEASURE_EVERY) + (step === steps && step % MEASURE_EVERY ? 1 : 0);
    return step + measured * this.#measurement;
  }

  /** Of `share` steps' worth of work that begin `at` after what is done. */
  #progress(share: number, at = 0): (done: number, total: number) => void {
    const { steps, onProgress } = this.#run;
    const from = this.#done + at;
    return (done, total) => onProgress?.(from + (share * done) / total, this.#work(steps));
  }
}
