/**
 * The backend contract: allocate, upload, read back, free; load weights once; record a whole
 * step once and replay it. A backend knows operations, never models.
 *
 * @module
 */
import type { Rotation } from "../quantizers/hadamard/rotation.ts";
import type { ResidualBits } from "../quantizers/residual.ts";
import type { LinearHandle, Operation, ResidualHandle } from "./operation.ts";
import type { Slot } from "./slot.ts";

export type { Slot } from "./slot.ts";

/** A linear layer's weights as a checkpoint holds them, in the canonical layout. */
export type LinearWeights = FloatWeights | QuantizedWeights;

export interface FloatWeights {
  readonly scheme: "f32" | "f16";
  readonly rows: number;
  readonly columns: number;
  /**
   * float32 rows [start, end), called once per block of rows, in order. A reader that can writes them to `target`,
   * which may lie in shared memory, and returns it.
   */
  readonly readRows: (start: number, end: number, target?: Float32Array) => Promise<Float32Array>;
}

export interface QuantizedWeights {
  /** A scheme of the palette, e.g. `nuq-4`. */
  readonly scheme: string;
  readonly rows: number;
  readonly columns: number;
  /** Canonical packed codes, see `quantizers/quantizer.ts`. */
  readonly codes: Uint8Array;
  /** One scale per row. */
  readonly scales: Float32Array;
  /** The rotation of the input that the codes expect; undefined when they are in the original basis. */
  readonly rotation?: Rotation;
}

/** Weights in a backend can be cut at multiples of so many rows. */
export const SLICE_ROWS = 16;

/** What quantizing took from the weights of one input; `quantizers/residual.ts` has the layout of a row's parts. */
export interface ResidualSource {
  readonly bits: ResidualBits;
  readonly columns: number;
  /** Bytes of a row. */
  readonly stride: number;
  readonly members: readonly ResidualMember[];
  /** Reads all rows, [columns, stride], into `target`. */
  readonly read: (target: Uint8Array) => Promise<unknown>;
  /** Given when rows are to stay in a file and be read when they are chosen: they then take none of the backend's memory. */
  readonly file?: RowFile;
}

export interface RowFile {
  readonly name: string;
  readonly descriptor: number;
  /** First byte of the first row. */
  readonly position: number;
}

/** The part of a residual's rows that belongs to one weight. */
export interface ResidualMember {
  /** Output channels. */
  readonly rows: number;
  /** Its first byte in every row. */
  readonly offset: number;
  /** [rows] */
  readonly scales: Float32Array;
}

/** A recorded sequence of operations. */
export interface Program {
  readonly operations: number;
  free(): void;
}

export interface Backend {
  readonly name: string;
  readonly threads: number;
  /** Bytes now allocated in the backend's memory. */
  readonly bytesAllocated: number;
  /** Zero-filled memory. Throws a HalftoneError when the device has no more. */
  allocate(byteLength: number): Slot;
  /** As {@link allocate}, contents unspecified: memory never written may cost nothing. */
  reserve(byteLength: number): Slot;
  free(slot: Slot): void;
  upload(slot: Slot, data: ArrayBufferView, byteOffset?: number): void;
  /** Copies float32 values out, after everything submitted before has run. */
  readFloats(slot: Slot, count: number): Promise<Float32Array>;
  /** Takes weights into the backend's memory, repacked. Throws UnsupportedError when no kernel covers them. */
  loadLinear(weights: LinearWeights): Promise<LinearHandle>;
  freeLinear(handle: LinearHandle): void;
  /** Makes a residual ready for linear operations that are compensated. */
  loadResidual(source: ResidualSource): Promise<ResidualHandle>;
  freeResidual(handle: ResidualHandle): void;
  /**
   * Rows [firstRow, firstRow + rows) of weights, which stay where they are: freeing the slice does nothing.
   * `firstRow` is a multiple of {@link SLICE_ROWS}.
   */
  sliceLinear(handle: LinearHandle, firstRow: number, rows: number): LinearHandle;
  /** Checks and lowers operations once; the slots they name must outlive the program. */
  record(operations: readonly Operation[]): Program;
  run(program: Program): Promise<void>;
  /** Bytes per second that this backend reads from its memory: the bound of decoding. Absent where it means nothing. */
  readBandwidth?(): number;
  dispose(): void;
}
