/**
 * What every model format is read into: a Hugging Face config, named tensors that
 * are read only when asked for, and the tokenizer's files.
 *
 * @module
 */

/** Bytes at rest: a file, a buffer, a ranged URL. Readers never ask for more than they need. */
export interface ByteSource {
  /** How to call it in messages, usually the path. */
  readonly name: string;
  /** Total bytes. */
  readonly size: number;
  /** Number of an open file of Node, where the bytes are one: for reads that cannot wait. */
  readonly descriptor?: number;
  /**
   * Reads `length` bytes at `offset`, into `target` when given (it may lie in shared memory).
   * Rejects with a CheckpointError when the range leaves the source.
   */
  read(offset: number, length: number, target?: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A tensor in a checkpoint. Nothing is read until a method is called. */
export interface Tensor {
  /** Hugging Face name, e.g. `model.layers.0.self_attn.q_proj.weight`. */
  readonly name: string;
  /** Row-major shape, outermost first; a linear weight is [out, in]. */
  readonly shape: readonly number[];
  /** How it is stored: `F32`, `BF16`, `Q4_K`, `int8`, ... */
  readonly encoding: string;
  /** Stored bytes, scales included. */
  readonly byteLength: number;
  /**
   * Rows [start, end) of the outermost dimension as float32 (dequantized, `(end - start) * rowSize` values),
   * into `target` when given. A scalar or vector counts as one row per element.
   */
  readRows(start: number, end: number, target?: Float32Array): Promise<Float32Array>;
  /** The stored bytes unchanged, for formats that have them in one piece. */
  readBytes?(target?: Uint8Array): Promise<Uint8Array>;
}

/** The tokenizer as Hugging Face stores it, parsed; formats that embed another kind are converted to this. */
export interface TokenizerFiles {
  /** tokenizer.json */
  readonly tokenizer: Record<string, unknown>;
  /** tokenizer_config.json (with `bos_token`, `eos_token`, `add_bos_token`, ... as strings) */
  readonly config: Record<string, unknown>;
  /** The Jinja chat template, wherever it was stored. */
  readonly chatTemplate?: string;
}

/** How a float model was balanced. */
export interface Balance {
  /** Tokens that the sizes of its inputs were measured on. */
  readonly tokens: number;
  /** Of the ratio of inputs to weights that channels were scaled by. */
  readonly exponent: number;
  /** SHA-256 of all scales in hex: two models balanced with the same are the same. */
  readonly digest: string;
}

/** A model at rest, whatever its format. */
export interface Checkpoint {
  /** The folder, file or package, as the user named it. */
  readonly source: string;
  readonly format: "safetensors" | "gguf" | "onnx" | "llama2.c";
  /** config.json in Hugging Face's terms. */
  readonly config: Readonly<Record<string, unknown>>;
  /** generation_config.json, `{}` when absent. */
  readonly generationConfig: Readonly<Record<string, unknown>>;
  /** By Hugging Face name. Quantized Halftone checkpoints hold `NAME.codes`, `NAME.scales` here too. */
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly tokenizer: TokenizerFiles | undefined;
  /** Set where a float model's channels were scaled for data-free rounding, see docs/palette.md, "Balancing". */
  readonly balance?: Balance;
  /** Opens another file of the model's folder; undefined when it is not there. Only formats of folders have it. */
  openFile?(file: string): Promise<ByteSource | undefined>;
  close(): Promise<void>;
}
