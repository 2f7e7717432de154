/**
 * What the case files of the operations hold: one operation with its inputs, as data that any backend can run.
 *
 * @module
 */
import type { LinearWeights, ResidualSource } from "../backends/backend.ts";
import type { LinearHandle, Operation, ResidualHandle } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import { fillGaussian, randomWord } from "../quantizers/random.ts";

/** Contents of a slot before the operation runs. */
export interface CaseBuffer {
  readonly data: Float32Array | Int32Array;
  /** Values per token, when the buffer holds one row for each; one token's part then is an input by itself. */
  readonly perToken?: number;
}

export interface CaseInputs {
  readonly buffers: Readonly<Record<string, CaseBuffer>>;
  readonly weights?: Readonly<Record<string, LinearWeights>>;
  readonly residual?: ResidualSource;
}

export interface OperationCase {
  readonly name: string;
  readonly tokens: number;
  /** The same values at every call. */
  inputs(): CaseInputs;
  /** The operation over `tokens` rows of the slots (those of the buffers, by name). */
  operation(
    slots: Readonly<Record<string, Slot>>,
    weights: Readonly<Record<string, LinearHandle>>,
    tokens: number,
    residual?: ResidualHandle,
  ): Operation;
  /** Names of the float buffers that the operation writes. */
  readonly results: readonly string[];
}

/** Gaussian values, the same for a seed. */
export function gaussian(count: number, seed: number, deviation = 1): Float32Array {
  const values = fillGaussian(new Float32Array(count), seed);
  return deviation === 1 ? values : values.map((value) => value * deviation);
}

/** Integers of [0, limit), the same for a seed. */
export function integers(count: number, limit: number, seed: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => randomWord(seed, i) % limit);
}
