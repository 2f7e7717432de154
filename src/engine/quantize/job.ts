/**
 * The pure functions that quantizing is made of. They may run on any thread, and give the same bits on all.
 *
 * @module
 */
import type { StoredScheme } from "../../checkpoint/quantization.ts";
import { type Distortion, measureDistortion } from "../../quantizers/distortion.ts";
import { rotateRows, rotationFor } from "../../quantizers/hadamard/rotation.ts";
import { ldlq } from "../../quantizers/ldlq.ts";
import { rowScales } from "../../quantizers/quantizer.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { type PreparedHessian, type PrepareOptions, prepareHessian } from "../calibrate/hessian.ts";
import { refitScales, startingScale } from "./scales.ts";
import { quantizeRows } from "./tensor.ts";

type Storage = Pick<StoredScheme, "scheme" | "rotation">;

/** Rows of one weight: whole groups of 16, but for the last ones. */
interface Rows {
  readonly weights: Float32Array;
  readonly rows: number;
  readonly columns: number;
  readonly stored: Storage;
}

/** Rounds rows without calibration. */
export interface RoundJob extends Rows {
  readonly kind: "round";
}

/** Makes a Hessian ready for {@link LdlqJob}s. */
export interface PrepareJob extends PrepareOptions {
  readonly kind: "prepare";
  readonly sums: Float32Array;
  readonly columns: number;
  readonly rotation: number | null;
}

export interface LdlqOptions {
  /** Fit the scales to the codes by least squares in the Hessian's metric. */
  readonly refit: boolean;
  /** Widen the starting scales by the feedback that weights will get. */
  readonly widen: boolean;
}

/** Rounds rows against a Hessian. */
export interface LdlqJob extends Rows, LdlqOptions {
  readonly kind: "ldlq";
  readonly prepared: PreparedHessian;
}

/** Brings codes back to float rows in the original basis. */
export interface DecodeJob {
  readonly kind: "decode";
  readonly codes: Uint8Array;
  readonly scales: Float32Array;
  readonly columns: number;
  readonly stored: Storage;
}

export interface QuantizedRows {
  readonly codes: Uint8Array;
  readonly scales: Float32Array;
}

export interface CalibratedRows extends QuantizedRows {
  /** The rows that codes and scales stand for, in the original basis. */
  readonly decoded: Float32Array;
}

/** Measures a scheme on Gaussian weights. */
export interface DistortionJob {
  readonly kind: "distortion";
  readonly scheme: string;
  readonly sequences: number;
  readonly seed: number;
}

export type Job = RoundJob | PrepareJob | LdlqJob | DecodeJob | DistortionJob;

export interface JobResults {
  readonly round: QuantizedRows;
  readonly prepare: PreparedHessian;
  readonly ldlq: CalibratedRows;
  readonly decode: Float32Array;
  readonly distortion: Distortion;
}

/** Runs a job. Its results share no memory with it; what `prepare` gives lies in memory that threads can share. */
export function runJob(job: Job): JobResults[Job["kind"]] {
  switch (job.kind) {
    case "round":
      return quantizeRows(job.weights, job.rows, job.columns, job.stored);
    case "prepare":
      return shared(prepareHessian(job.sums, job.columns, rotationOf(job.columns, job.rotation), job));
    case "ldlq":
      return calibratedRows(job);
    case "decode":
      return decodeRows(job.codes, job.scales, job.columns, job.stored);
    case "distortion":
      return measureDistortion(quantizerFor(parseScheme(job.scheme)), job.sequences, job.seed);
  }
}

function calibratedRows({ weights, rows, columns, stored, prepared, refit, widen }: LdlqJob): CalibratedRows {
  const quantizer = quantizerFor(parseScheme(stored.scheme));
  const rotation = rotationOf(columns, stored.rotation);
  const target = rotation ? rotateRows(weights, rows, columns, rotation) : weights;
  const start = widen ? startingScale(quantizer, prepared) : 1;
  const scales = rowScales(quantizer, target, rows, columns).map((scale) => scale * start);
  const matrix = ldlq(quantizer, target, rows, columns, prepared.factor, { scales });
  const decoded = quantizer.decode(matrix);
  if (refit) refitScales(target, decoded, scales, prepared.hessian, columns);
  rotation?.inverse(decoded);
  return { codes: matrix.codes, scales, decoded };
}

function decodeRows(
  codes: Uint8Array,
  scales: Float32Array,
  columns: number,
  { scheme, rotation }: Storage,
): Float32Array {
  const rows = scales.length;
  const decoded = quantizerFor(parseScheme(scheme)).decode({ scheme, rows, columns, codes, scales });
  rotationOf(columns, rotation)?.inverse(decoded);
  return decoded;
}

function shared({ hessian, factor, feedbackPower }: PreparedHessian): PreparedHessian {
  const share = (values: Float32Array) => {
    const copy = new Float32Array(new SharedArrayBuffer(values.byteLength));
    copy.set(values);
    return copy;
  };
  return {
    hessian: share(hessian),
    factor: { ...factor, feedback: share(factor.feedback) },
    feedbackPower,
  };
}

function rotationOf(columns: number, seed: number | null) {
  return seed === null ? undefined : rotationFor(columns, seed);
}
