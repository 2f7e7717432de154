import type { Deferred } from "./instruction.ts";

/** Memory that the instructions of one program use one after another: as large as the largest of them needs. */
export class Scratch {
  readonly #sizes = new Map<string, number>();
  readonly #addresses = new Map<string, number>();
  readonly threads: number;
  #stride = 0;

  constructor(threads: number) {
    this.threads = threads;
  }

  /** The address of a region shared by all threads. */
  shared(name: string, byteLength: number): Deferred {
    this.#sizes.set(name, Math.max(this.#sizes.get(name) ?? 0, byteLength));
    return { resolve: () => this.#addresses.get(name)! };
  }

  /**
   * Address of the first thread's piece and the distance between pieces, to pass one after the other. The distance
   * is one for the whole program: threads that are at different instructions must not share a piece.
   */
  perThread(byteLength: number): [Deferred, Deferred] {
    this.#stride = Math.max(this.#stride, Math.ceil(byteLength / 64) * 64);
    return [this.shared("thread", this.#stride * this.threads), { resolve: () => this.#stride }];
  }

  /** Allocates every region; call once, when all instructions are known. Returns the addresses, to free them. */
  place(allocate: (byteLength: number) => number): number[] {
    for (const [name, size] of this.#sizes) this.#addresses.set(name, allocate(size));
    return [...this.#addresses.values()];
  }
}
