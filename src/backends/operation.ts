/**
 * The vocabulary of operations: what a model asks of a backend. `ops/` holds one folder
 * for each, with its plain reference and the version of every backend.
 *
 * All activations are float32, row-major, one row per token. `rows` is the number of tokens
 * in the step; it is fixed when a program is recorded.
 *
 * @module
 */
import type { Slot } from "./slot.ts";

/** A weight matrix that lives in a backend, packed the way its kernels like. */
export interface LinearHandle {
  readonly rows: number;
  readonly columns: number;
  /** `f32`, `f16`, `nuq-4`, ... */
  readonly scheme: string;
  /** Bytes held in the backend's memory. */
  readonly byteLength: number;
}

/**
 * How precisely activations are read by products with quantized weights: as they are, or after the rotation rounded to
 * 16, 8 or 4 bits per token and group of 128. Float weights take them as they are.
 */
export type ActivationPrecision = "float" | "int16" | "int8" | "int4";

/** What quantizing took from the weights of one input, a row per input channel, for use by a backend. */
export interface ResidualHandle {
  readonly columns: number;
  /** 2, 4, 8 or 16 */
  readonly bits: number;
  /** Output channels of each weight. */
  readonly rows: readonly number[];
  /** Bytes held in the backend's memory. */
  readonly byteLength: number;
}

/**
 * By what the input channels of a token are chosen: the largest inputs; the largest by the chunks and buckets of DecDEC,
 * section 4.3; the channels of most energy, float32 [columns], the same for every token; or at random.
 */
export type ChannelSelection =
  | { readonly by: "magnitude" }
  /** The largest magnitude to expect, and that of the last channel chosen. */
  | { readonly by: "buckets"; readonly largest: number; readonly usual: number }
  | { readonly by: "energy"; readonly energies: Slot }
  | { readonly by: "random"; readonly seed: number };

/** outputs[i] += the residual rows of the input channels chosen in each token, times their inputs (DecDEC). */
export interface Compensation {
  readonly residual: ResidualHandle;
  /** Input channels chosen per token. */
  readonly channels: number;
  readonly selection: ChannelSelection;
  /** One for each weight of the residual. */
  readonly outputs: readonly Slot[];
  /** Threads that read rows from a file, while the others multiply already. Default all. */
  readonly readers?: number;
}

/** out[t] = table[ids[t]] * scale */
export interface Embed {
  readonly op: "embed";
  readonly table: LinearHandle;
  /** int32 [rows] */
  readonly ids: Slot;
  readonly out: Slot;
  readonly rows: number;
  readonly scale: number;
}

/** input += add (when given); out = input / rms(input) * weight, row by row. */
export interface RmsNorm {
  readonly op: "rmsNorm";
  readonly input: Slot;
  readonly add?: Slot;
  /** [size] */
  readonly weight: Slot;
  readonly out: Slot;
  readonly rows: number;
  readonly size: number;
  readonly epsilon: number;
}

/** outputs[i] = input . weights[i]^T (+ biases[i]); weights share the input, rotated for each as its rotation says. */
export interface Linear {
  readonly op: "linear";
  readonly input: Slot;
  readonly weights: readonly LinearHandle[];
  readonly biases: readonly (Slot | undefined)[];
  readonly outputs: readonly Slot[];
  readonly rows: number;
  readonly activations: ActivationPrecision;
  /** Applied after the products, on the input as it is before any rotation. */
  readonly compensation?: Compensation;
}

/**
 * Rotates queries in place and keys on their way into the cache (rotate-half convention),
 * and stores the values: `keys[sequence][head][position] = rope(k)`, `values[sequence][head][position] = v`.
 */
export interface RopeStore {
  readonly op: "ropeStore";
  /** [rows, heads * headSize] */
  readonly q: Slot;
  /** [rows, kvHeads * headSize] */
  readonly k: Slot;
  readonly v: Slot;
  /** cos then sin per row, [rows, 2, rotated / 2]; absent in layers without positions. */
  readonly rope?: Slot;
  /** How many of a head's elements rotate (even). */
  readonly rotated: number;
  readonly cache: KeyValueSlots;
  /** int32 [rows]: the token's position in its sequence, and its sequence's place in the cache. */
  readonly positions: Slot;
  readonly sequences: Slot;
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
}

/**
 * How a cache holds keys and values: float32, float16, or int8 with a scale for every head of every position. Products
 * with them are of floats whatever the type.
 */
export type KeyValueType = "f32" | "f16" | "int8";

/** Keys and values of one layer, [sequences, kvHeads, capacity, headSize] each, heads as `type` says. */
export interface KeyValueSlots {
  readonly type: KeyValueType;
  readonly keys: Slot;
  readonly values: Slot;
  readonly capacity: number;
}

/** Causal grouped-query attention of every row over its own sequence's cache, its own position included. */
export interface Attention {
  readonly op: "attention";
  readonly q: Slot;
  readonly cache: KeyValueSlots;
  readonly positions: Slot;
  readonly sequences: Slot;
  readonly out: Slot;
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Multiplies the scores, usually 1 / sqrt(headSize). */
  readonly scale: number;
  /** Sees positions > position - window; 0 sees all. */
  readonly window: number;
  /** score = softcap * tanh(score / softcap); 0 leaves scores alone. */
  readonly softcap: number;
}

/** out = activation(gate) * up, element by element. */
export interface Gate {
  readonly op: "gate";
  readonly gate: Slot;
  readonly up: Slot;
  readonly out: Slot;
  readonly rows: number;
  readonly size: number;
  readonly activation: "silu" | "geluTanh";
}

/** input += add */
export interface Add {
  readonly op: "add";
  readonly input: Slot;
  readonly add: Slot;
  readonly rows: number;
  readonly size: number;
}

/** input = limit * tanh(input / limit) */
export interface Softcap {
  readonly op: "softcap";
  readonly input: Slot;
  readonly rows: number;
  readonly size: number;
  readonly limit: number;
}

/**
 * sums += input^T . diag(weights) . input over the rows, upper triangle (column >= row) only: what calibration learns
 * of an input.
 */
export interface Gram {
  readonly op: "gram";
  /** [rows, size] */
  readonly input: Slot;
  /** [rows], not negative; absent: ones. */
  readonly weights?: Slot;
  /** [size, size] */
  readonly sums: Slot;
  readonly rows: number;
  readonly size: number;
}

/** out = input, but the elements of largest magnitude in each row zero: what compensation leaves to the weights. */
export interface Suppress {
  readonly op: "suppress";
  readonly input: Slot;
  readonly out: Slot;
  readonly rows: number;
  readonly size: number;
  /** How many of a row become zero. */
  readonly channels: number;
}

export type Operation =
  | Embed
  | RmsNorm
  | Linear
  | RopeStore
  | Attention
  | Gate
  | Add
  | Softcap
  | Gram
  | Suppress;
export type OperationName = Operation["op"];
