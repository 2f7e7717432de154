import { MemoryError } from "../errors.ts";

const ALIGNMENT = 64;

/** Hands out pieces of one linear memory, first fit, freed neighbours joined. */
export class Arena {
  readonly #grow: (end: number) => boolean;
  /** Free ranges by start, never adjacent. */
  #free: { start: number; end: number }[] = [];
  #end: number;
  readonly #sizes = new Map<number, number>();
  bytesAllocated = 0;

  /** @param grow makes the memory reach `end`, or returns false. */
  constructor(start: number, grow: (end: number) => boolean) {
    this.#end = roundUp(start);
    this.#grow = grow;
  }

  allocate(byteLength: number): number {
    const size = Math.max(ALIGNMENT, roundUp(byteLength));
    const index = this.#free.findIndex(({ start, end }) => end - start >= size);
    let start: number;
    if (index >= 0) {
      const range = this.#free[index];
      start = range.start;
      range.start += size;
      if (range.start === range.end) this.#free.splice(index, 1);
    } else {
      const last = this.#free.at(-1);
      const atEnd = last?.end === this.#end;
      start = atEnd ? last!.start : this.#end;
      if (!this.#grow(start + size)) {
        const used = Math.round(this.bytesAllocated / 2 ** 20);
        throw new MemoryError(
          `out of memory: ${Math.ceil(byteLength / 2 ** 20)} MB more do not fit beside ${used} MB; take a smaller model, fewer bits or a shorter context`,
        );
      }
      if (atEnd) this.#free.pop();
      this.#end = start + size;
    }
    this.#sizes.set(start, size);
    this.bytesAllocated += size;
    return start;
  }

  free(start: number): void {
    const size = this.#sizes.get(start);
    if (size === undefined) return;
    this.#sizes.delete(start);
    this.bytesAllocated -= size;
    const after = this.#free.findIndex((range) => range.start > start);
    this.#free.splice(after < 0 ? this.#free.length : after, 0, { start, end: start + size });
    this.#free = this.#free.reduce<{ start: number; end: number }[]>((joined, range) => {
      const last = joined.at(-1);
      if (last?.end === range.start) last.end = range.end;
      else joined.push(range);
      return joined;
    }, []);
  }
}

function roundUp(size: number): number {
  return Math.ceil(size / ALIGNMENT) * ALIGNMENT;
}
