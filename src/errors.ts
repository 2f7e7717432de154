/**
 * The error classes of Halftone. Every message says what was wrong, where it was
 * found (file, tensor, byte offset, flag) and what the reader can do about it.
 *
 * @module
 */

/** Base class: anything the user can act upon. The CLI prints its message on one line and exits with 1. */
export class HalftoneError extends Error {
  override name = "HalftoneError";
}

/** A model file or folder that is damaged, truncated, hostile or inconsistent. */
export class CheckpointError extends HalftoneError {
  override name = "CheckpointError";
  /** The file, as the user named it. */
  readonly file: string;
  /** Byte offset in that file where the trouble starts, when known. */
  readonly offset: number | undefined;

  constructor(
    file: string,
    problem: string,
    options: { offset?: number; remedy?: string; cause?: unknown } = {},
  ) {
    const place = options.offset === undefined ? file : `${file} at byte ${options.offset}`;
    const remedy = options.remedy ?? "fetch or export the file again";
    super(`${place}: ${problem}; ${remedy}`, { cause: options.cause });
    this.file = file;
    this.offset = options.offset;
  }
}

/** Something valid that Halftone cannot do: an architecture, a tensor type, a scheme, a shape. */
export class UnsupportedError extends HalftoneError {
  override name = "UnsupportedError";
}

/** The device has no memory left for what was asked. */
export class MemoryError extends HalftoneError {
  override name = "MemoryError";
}

/** A wrong argument: flag, option, prompt too long, missing file. */
export class UsageError extends HalftoneError {
  override name = "UsageError";
}
