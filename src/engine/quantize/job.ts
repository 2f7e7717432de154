/**
 * The pure functions that quantizing is made of. They may run on any thread, and give the same bits on all.
 *
 * @module
 */
import type { StoredScheme } from "../../checkpoint/quantization.ts";
import { type Distortion, measureDistortion } from "../../quantizers/distortion.ts";
import { type Rotation, rotateRows, rotationFor } from "../../quantizers/hadamard/rotation.ts";
import { ldlq } from "../../quantizers/ldlq.ts";
import type { QuantizedMatrix, Quantizer } from "../../quantizers/quantizer.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { type EncodedResidual, encodeResidual, type ResidualBits } from "../../quantizers/residual.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { type PreparedHessian, type PrepareOptions, prepareHessian } from "../calibrate/hessian.ts";
import { refitScales } from "./scales.ts";

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

/** Rounds rows against a Hessian. */
export interface LdlqJob extends Rows {
  readonly kind: "ldlq";
  /** Fit the scales to the codes by least squares in the Hessian's metric. */
  readonly refit: boolean;
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

/** Encodes what rounding took from rows, in the original basis. */
export interface ResidualJob extends Rows {
  readonly kind: "residual";
  readonly codes: Uint8Array;
  readonly scales: Float32Array;
  readonly bits: ResidualBits;
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

export type Job = RoundJob | PrepareJob | LdlqJob | DecodeJob | ResidualJob | DistortionJob;

export interface JobResults {
  readonly round: QuantizedRows;
  readonly prepare: PreparedHessian;
  readonly ldlq: CalibratedRows;
  readonly decode: Float32Array;
  readonly residual: EncodedResidual;
  readonly distortion: Distortion;
}

/**
 * What runs jobs on one thread. It keeps quantizers and rotations, whose tables take longer to make than a small job
 * to do. A job's results share no memory with it; what `prepare` gives lies in memory that threads can share.
 */
export function createJobRunner(): <J extends Job>(job: J) => JobResults[J["kind"]] {
  const quantizers = new Map<string, Quantizer>();
  const quantizerOf = (scheme: string): Quantizer => {
    const quantizer = quantizers.get(scheme) ?? quantizerFor(parseScheme(scheme));
    quantizers.set(scheme, quantizer);
    return quantizer;
  };
  const rotations = new Map<string, Rotation>();
  const rotationOf = (columns: number, seed: number | null): Rotation | undefined => {
    if (seed === null) return undefined;
    const key = `${columns} ${seed}`;
    const rotation = rotations.get(key) ?? rotationFor(columns, seed);
    rotations.set(key, rotation);
    return rotation;
  };
  const run = (job: Job): JobResults[Job["kind"]] => {
    if (job.kind === "prepare") {
      return shared(prepareHessian(job.sums, job.columns, rotationOf(job.columns, job.rotation), job));
    }
    if (job.kind === "distortion") {
      return measureDistortion(quantizerOf(job.scheme), job.sequences, job.seed);
    }
    const { columns, stored } = job;
    const quantizer = quantizerOf(stored.scheme);
    const rotation = rotationOf(columns, stored.rotation);
    if (job.kind === "decode") {
      const { codes, scales } = job;
      return decodeRows(
        { scheme: stored.scheme, rows: scales.length, columns, codes, scales },
        quantizer,
        rotation,
      );
    }
    const { rows } = job;
    if (job.kind === "residual") {
      const { codes, scales } = job;
      const residual = decodeRows(
        { scheme: stored.scheme, rows, columns, codes, scales },
        quantizer,
        rotation,
      );
      for (let i = 0; i < residual.length; i++) residual[i] = job.weights[i] - residual[i];
      return encodeResidual(residual, rows, columns, job.bits);
    }
    const target = rotation ? rotateRows(job.weights, rows, columns, rotation) : job.weights;
    return job.kind === "round"
      ? quantizer.encode(target, rows, columns)
      : calibratedRows(job, target, quantizer, rotation);
  };
  return run as ReturnType<typeof createJobRunner>;
}

function calibratedRows(
  { rows, columns, prepared, refit }: LdlqJob,
  target: Float32Array,
  quantizer: Quantizer,
  rotation: Rotation | undefined,
): CalibratedRows {
  const matrix = ldlq(quantizer, target, rows, columns, prepared.factor);
  const { codes, scales } = matrix;
  if (refit) refitScales(target, quantizer.decode(matrix), scales, prepared.hessian, columns);
  // Decoded from the codes as a resumed run will: to the same bits.
  return { codes, scales, decoded: decodeRows(matrix, quantizer, rotation) };
}

function decodeRows(
  matrix: QuantizedMatrix,
  quantizer: Quantizer,
  rotation: Rotation | undefined,
): Float32Array {
  const decoded = quantizer.decode(matrix);
  rotation?.inverse(decoded);
  return decoded;
}

function shared({ hessian, factor }: PreparedHessian): PreparedHessian {
  const share = (values: Float32Array) => {
    const copy = new Float32Array(new SharedArrayBuffer(values.byteLength));
    copy.set(values);
    return copy;
  };
  return { hessian: share(hessian), factor: { ...factor, feedback: share(factor.feedback) } };
}
