/**
 * The CPU backend: AssemblyScript kernels over one shared memory, run by the calling thread and,
 * where the host has them, by persistent workers that spin a bounded while between tokens.
 *
 * @module
 */
import { HalftoneError, UnsupportedError } from "../../errors.ts";
import type { Backend, LinearWeights, Program, ResidualSource } from "../backend.ts";
import type { LinearHandle, Operation, OperationName, ResidualHandle } from "../operation.ts";
import type { Slot } from "../slot.ts";
import { WasmDevice } from "./device.ts";
import { encodeProgram, type Instruction } from "./instruction.ts";
import { compileKernels, type Kernels, type SimdLevel } from "./module.ts";
import * as control from "./opcodes.ts";
import { type FetchRows, fetchError, fetchNothing } from "./rowFetcher.ts";
import { Scratch } from "./scratch.ts";
import { TeamSize } from "./teamSize.ts";
import type { SpawnWorker } from "./workers.ts";

/** Most pages of the memory: 4 GB, or what a small device gives as address space. */
const MAX_PAGES = [65536, 32768, 16384, 8192];

export type { WasmDevice } from "./device.ts";

/** What a lowering may use: memory of the device, and scratch of the program being recorded. */
export interface LoweringContext {
  readonly device: WasmDevice;
  readonly scratch: Scratch;
}

/** How each operation becomes instructions; `ops/wasm.ts` holds the table. */
export type Lowerings = {
  readonly [K in OperationName]: (
    operation: Extract<Operation, { op: K }>,
    context: LoweringContext,
  ) => Instruction[];
};

/** How weights are brought into memory; `ops/linear/` decides the packing. */
export interface LinearLoader {
  load(weights: LinearWeights, device: WasmDevice): Promise<LinearHandle>;
  free(handle: LinearHandle, device: WasmDevice): void;
  slice(handle: LinearHandle, firstRow: number, rows: number): LinearHandle;
  loadResidual(source: ResidualSource, device: WasmDevice): Promise<ResidualHandle>;
  freeResidual(handle: ResidualHandle, device: WasmDevice): void;
}

export interface WasmOptions {
  /** Threads that compute, the caller's included, 256 at most. Default 1. */
  readonly threads?: number;
  /** Needed for more than one thread. */
  readonly spawn?: SpawnWorker;
  /** Lets the calling thread read rows of files in the middle of a step; `spawn`ed ones have their own. */
  readonly fetchRows?: (memory: WebAssembly.Memory) => FetchRows;
  /** Every program runs on all threads even where the caller alone is faster: for measurements. Default false. */
  readonly wholeTeam?: boolean;
  /** Forces a build of the kernels, for tests and comparisons. */
  readonly simd?: SimdLevel;
}

export class WasmBackend implements Backend {
  readonly name = "wasm";
  readonly device: WasmDevice;
  readonly #workers: { terminate(): void }[];
  readonly #lowerings: Lowerings;
  readonly #loader: LinearLoader;
  readonly #wholeTeam: boolean;
  readonly #control: Int32Array;
  /** What the last program says to those to come, see TeamSize. */
  #heldUp = 0;
  #disposed = false;

  private constructor(
    device: WasmDevice,
    workers: { terminate(): void }[],
    lowerings: Lowerings,
    loader: LinearLoader,
    wholeTeam: boolean,
  ) {
    this.#wholeTeam = wholeTeam;
    this.device = device;
    this.#control = new Int32Array(device.memory.buffer, 0, control.SEEN >> 2);
    this.#workers = workers;
    this.#lowerings = lowerings;
    this.#loader = loader;
  }

  /** Starts the backend and its threads. */
  static async open(
    lowerings: Lowerings,
    loader: LinearLoader,
    options: WasmOptions = {},
  ): Promise<WasmBackend> {
    const threads = options.spawn ? teamOf(options.threads) : 1;
    const { module, simd } = await compileKernels(options.simd);
    const memory = sharedMemory();
    const env = {
      memory,
      fetchRows: options.fetchRows?.(memory) ?? fetchNothing,
      abort: () => {
        throw new HalftoneError("a kernel aborted; this is a defect of Halftone");
      },
    };
    const { exports } = await WebAssembly.instantiate(module, { env });
    const view = new Int32Array(memory.buffer);
    view[control.THREADS >> 2] = threads;
    view[control.MAY_WAIT >> 2] = mayWait(view) ? 1 : 0;
    const workers = await startWorkers(threads - 1, (i) => options.spawn!({ module, memory, thread: i + 1 }));
    const device = new WasmDevice(exports as unknown as Kernels, memory, threads, simd);
    return new WasmBackend(device, workers, lowerings, loader, options.wholeTeam ?? false);
  }

  get threads(): number {
    return this.device.threads;
  }

  get bytesAllocated(): number {
    return this.device.bytesAllocated;
  }

  allocate(byteLength: number): Slot {
    return this.device.allocate(byteLength);
  }

  reserve(byteLength: number): Slot {
    return this.device.reserve(byteLength);
  }

  free(slot: Slot): void {
    this.device.free(slot);
  }

  upload(slot: Slot, data: ArrayBufferView, byteOffset = 0): void {
    this.device.bytes(slot).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), byteOffset);
  }

  async readFloats(slot: Slot, count: number): Promise<Float32Array> {
    return new Float32Array(this.device.memory.buffer, slot.place, count).slice();
  }

  loadLinear(weights: LinearWeights): Promise<LinearHandle> {
    return this.#loader.load(weights, this.device);
  }

  freeLinear(handle: LinearHandle): void {
    this.#loader.free(handle, this.device);
  }

  sliceLinear(handle: LinearHandle, firstRow: number, rows: number): LinearHandle {
    return this.#loader.slice(handle, firstRow, rows);
  }

  loadResidual(source: ResidualSource): Promise<ResidualHandle> {
    return this.#loader.loadResidual(source, this.device);
  }

  freeResidual(handle: ResidualHandle): void {
    this.#loader.freeResidual(handle, this.device);
  }

  record(operations: readonly Operation[]): Program {
    const scratch = new Scratch(this.threads);
    const context = { device: this.device, scratch };
    return this.recordInstructions(
      operations.flatMap((operation) => this.#lower(operation, context)),
      scratch,
      operations.length,
    );
  }

  /** For benchmarks of single kernels: instructions as they are. */
  recordInstructions(
    instructions: readonly Instruction[],
    scratch: Scratch,
    operations: number,
  ): WasmProgram {
    const places = scratch.place((byteLength) => this.device.reserve(byteLength).place);
    const words = this.device.store(encodeProgram(instructions));
    const owned = [words.place, ...places];
    return {
      operations,
      address: words.place,
      team: new TeamSize(this.threads, this.#heldUp),
      free: () => {
        for (const place of owned) this.device.free({ place, byteLength: 0 });
      },
    };
  }

  /** Bytes per second that all threads together read from memory, median of a few passes over `byteLength` bytes. */
  readBandwidth(byteLength = 256 << 20): number {
    const memory = this.device.reserve(byteLength);
    const result = this.device.reserve(16 * this.threads);
    this.device.bytes(memory).fill(1);
    const args = [memory.place, byteLength, result.place];
    const program = this.recordInstructions(
      [{ code: control.READ_STREAM, args }],
      new Scratch(this.threads),
      1,
    );
    const seconds = Array.from({ length: 7 }, () => {
      const started = performance.now();
      this.runNow(program);
      return (performance.now() - started) / 1000;
    });
    program.free();
    this.free(result);
    this.free(memory);
    return byteLength / seconds.sort((a, b) => a - b)[3];
  }

  async run(program: Program): Promise<void> {
    this.runNow(program);
  }

  /** Synchronous twin of {@link run}. */
  runNow(program: Program): void {
    if (this.#disposed) throw new HalftoneError("this backend was disposed; load the model again");
    const { address, team } = program as WasmProgram;
    if (this.threads === 1 || this.#wholeTeam) this.device.kernels.run(address);
    else {
      const started = performance.now();
      const alone = team.choose();
      this.#control[control.THREADS >> 2] = alone ? 1 : this.threads;
      this.device.kernels.run(address);
      team.observe(alone, performance.now() - started);
      this.#heldUp = team.heldUp;
    }
    const problem = this.device.takeFetchProblem();
    if (problem !== 0) throw fetchError(problem, [...this.device.files]);
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    for (const worker of this.#workers) worker.terminate();
  }

  #lower<K extends OperationName>(
    operation: Extract<Operation, { op: K }>,
    context: LoweringContext,
  ): Instruction[] {
    const lower = this.#lowerings[operation.op] as (
      operation: Operation,
      context: LoweringContext,
    ) => Instruction[];
    return lower(operation, context);
  }
}

function teamOf(asked = 1): number {
  return Math.max(1, Math.min(control.MOST_THREADS, Math.floor(asked) || 1));
}

/** All of them, or none when one fails. */
async function startWorkers(
  count: number,
  start: (index: number) => Promise<{ terminate(): void }>,
): Promise<{ terminate(): void }[]> {
  const starts = await Promise.allSettled(Array.from({ length: count }, (_, i) => start(i)));
  const workers = starts.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = starts.find((result) => result.status === "rejected");
  if (failed === undefined) return workers;
  for (const worker of workers) worker.terminate();
  throw failed.reason;
}

/** A browser's page and its service worker may not sleep, they have to spin. */
function mayWait(words: Int32Array): boolean {
  try {
    Atomics.wait(words, control.MAY_WAIT >> 2, 1, 0);
    return true;
  } catch {
    return false;
  }
}

interface WasmProgram extends Program {
  readonly address: number;
  readonly team: TeamSize;
}

function sharedMemory(): WebAssembly.Memory {
  let cause: unknown;
  for (const maximum of MAX_PAGES) {
    try {
      return new WebAssembly.Memory({ initial: 16, maximum, shared: true });
    } catch (error) {
      cause = error;
    }
  }
  throw new UnsupportedError(
    "this engine gives no shared WebAssembly memory; raise its address-space limit or use a current browser",
    { cause },
  );
}
