import { CheckpointError, UnsupportedError } from "../../errors.ts";

/**
 * Reads rows of a file into the kernels' memory, in the middle of a step. Rows have `stride` bytes and begin at byte
 * `high` 2^32 + `low`; `reads` is the address of `count` triples (u32): first row, rows, address they go to. Returns 0,
 * END_OF_FILE or the negative error number.
 */
export type FetchRows = (
  file: number,
  low: number,
  high: number,
  stride: number,
  reads: number,
  count: number,
) => number;

const END_OF_FILE = 1;
const UNSUPPORTED = 2;

/** As Node's fs.readSync. */
type ReadSync = (
  file: number,
  target: Uint8Array,
  offset: number,
  length: number,
  position: number,
) => number;

/** What a host without files gives its kernels. */
export const fetchNothing: FetchRows = () => UNSUPPORTED;

/** The reader of one thread. Threads get its source text, so it names nothing outside itself. */
export function rowFetcher(readSync: ReadSync, memory: WebAssembly.Memory): FetchRows {
  return (file, low, high, stride, reads, count) => {
    const words = new Uint32Array(memory.buffer, reads, 3 * count);
    const target = new Uint8Array(memory.buffer);
    const start = (high >>> 0) * 4294967296 + (low >>> 0);
    for (let i = 0; i < words.length; i += 3) {
      const end = words[i + 2] + words[i + 1] * stride;
      const shift = start + words[i] * stride - words[i + 2];
      for (let at = words[i + 2]; at < end; ) {
        let read = 0;
        try {
          read = readSync(file, target, at, end - at, shift + at);
        } catch (error) {
          return (error as { errno?: number }).errno ?? -5;
        }
        if (read === 0) return 1;
        at += read;
      }
    }
    return 0;
  };
}

/** The error for what {@link FetchRows} returned. */
export function fetchError(problem: number, files: readonly string[]): Error {
  if (problem === UNSUPPORTED) {
    return new UnsupportedError(
      "this host cannot read rows from a file in the middle of a step; keep the residual in memory",
    );
  }
  const what =
    problem === END_OF_FILE ? "ends earlier than when it was opened" : `cannot be read (error ${-problem})`;
  return new CheckpointError(files.join(", "), what, {
    remedy: "restore the file, or decode without compensation (--no-compensation)",
  });
}
