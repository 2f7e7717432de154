import { Arena } from "../arena.ts";
import type { Slot } from "../slot.ts";
import type { Kernels, SimdLevel } from "./module.ts";
import { FETCH_PROBLEM } from "./opcodes.ts";

const PAGE = 65536;

/** Memory and kernels, without knowledge of operations. */
export class WasmDevice {
  readonly kernels: Kernels;
  readonly memory: WebAssembly.Memory;
  readonly threads: number;
  readonly simd: SimdLevel;
  /** Names of the files that programs read rows from. */
  readonly files = new Set<string>();
  readonly #arena: Arena;
  readonly #control: Int32Array;
  /** Things uploaded once and shared, such as the signs of a rotation. */
  readonly #shared = new Map<string, Slot>();

  constructor(kernels: Kernels, memory: WebAssembly.Memory, threads: number, simd: SimdLevel) {
    this.kernels = kernels;
    this.memory = memory;
    this.threads = threads;
    this.simd = simd;
    this.#control = new Int32Array(memory.buffer, 0, 1024);
    this.#arena = new Arena(kernels.heapBase(), (end) => {
      const missing = Math.ceil((end - memory.buffer.byteLength) / PAGE);
      if (missing <= 0) return true;
      return tryGrow(memory, Math.max(missing, 256)) || tryGrow(memory, missing);
    });
  }

  get bytesAllocated(): number {
    return this.#arena.bytesAllocated;
  }

  /** What kept the last program from reading rows, 0 when nothing did; the next one starts with 0. */
  takeFetchProblem(): number {
    return Atomics.exchange(this.#control, FETCH_PROBLEM >> 2, 0);
  }

  /** Zero-filled. */
  allocate(byteLength: number): Slot {
    const place = this.#arena.allocate(byteLength);
    const slot = { place, byteLength };
    this.bytes(slot).fill(0);
    return slot;
  }

  /** Not zero-filled: pages never written stay out of the resident set. */
  reserve(byteLength: number): Slot {
    return { place: this.#arena.allocate(byteLength), byteLength };
  }

  free(slot: Slot): void {
    this.#arena.free(slot.place);
  }

  bytes(slot: Slot): Uint8Array<ArrayBufferLike> {
    return new Uint8Array(this.memory.buffer, slot.place, slot.byteLength);
  }

  store(data: ArrayBufferView): Slot {
    const slot = this.reserve(data.byteLength);
    this.bytes(slot).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return slot;
  }

  /** Uploads `make()` once under a name. */
  shared(name: string, make: () => ArrayBufferView): Slot {
    const slot = this.#shared.get(name) ?? this.store(make());
    this.#shared.set(name, slot);
    return slot;
  }
}

function tryGrow(memory: WebAssembly.Memory, pages: number): boolean {
  try {
    memory.grow(pages);
    return true;
  } catch {
    return false;
  }
}
