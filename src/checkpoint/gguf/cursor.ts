import { CheckpointError } from "../../errors.ts";
import type { ByteSource } from "../checkpoint.ts";

const WINDOW_BYTES = 2 ** 20;

/**
 * Reads little-endian values in file order through a window. Call `need` before the synchronous
 * readers; it rejects, before anything is allocated, when the file ends earlier.
 */
export class Cursor {
  readonly #source: ByteSource;
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #window: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  /** File offset of the window's first byte. */
  #start = 0;
  /** Position in the window. */
  #at = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** File offset of the next byte. */
  get offset(): number {
    return this.#start + this.#at;
  }

  get remaining(): number {
    return this.#source.size - this.offset;
  }

  /** Bytes that can be read without waiting. */
  get buffered(): number {
    return this.#window.length - this.#at;
  }

  /** Makes the next `length` bytes readable. */
  async need(length: number, what: string): Promise<void> {
    if (length <= this.buffered) return;
    if (length > this.remaining) {
      throw this.error(`${what} needs ${length} bytes, the file has ${this.remaining} left`);
    }
    const offset = this.offset;
    this.#window = await this.#source.read(offset, Math.min(Math.max(length, WINDOW_BYTES), this.remaining));
    this.#view = new DataView(this.#window.buffer, this.#window.byteOffset, this.#window.byteLength);
    this.#start = offset;
    this.#at = 0;
  }

  /** Skips bytes that lie inside the file, without reading them. */
  skip(length: number, what: string): void {
    if (length > this.remaining) {
      throw this.error(`${what} needs ${length} bytes, the file has ${this.remaining} left`);
    }
    this.#at += length;
    if (this.#at > this.#window.length) {
      this.#start = this.offset;
      this.#at = 0;
      this.#window = new Uint8Array(0);
    }
  }

  u8(): number {
    return this.#view.getUint8(this.#advance(1));
  }
  i8(): number {
    return this.#view.getInt8(this.#advance(1));
  }
  u16(): number {
    return this.#view.getUint16(this.#advance(2), true);
  }
  i16(): number {
    return this.#view.getInt16(this.#advance(2), true);
  }
  u32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }
  i32(): number {
    return this.#view.getInt32(this.#advance(4), true);
  }
  f32(): number {
    return this.#view.getFloat32(this.#advance(4), true);
  }
  f64(): number {
    return this.#view.getFloat64(this.#advance(8), true);
  }
  /** Values beyond 2^53 come out rounded, hence as no safe integer. */
  u64(): number {
    return Number(this.#view.getBigUint64(this.#advance(8), true));
  }
  i64(): number {
    return Number(this.#view.getBigInt64(this.#advance(8), true));
  }

  utf8(length: number): string {
    const from = this.#advance(length);
    try {
      return this.#utf8.decode(this.#window.subarray(from, from + length));
    } catch (cause) {
      this.#at = from;
      throw this.error("text that is not UTF-8", cause);
    }
  }

  error(problem: string, cause?: unknown): CheckpointError {
    return new CheckpointError(this.#source.name, problem, { offset: this.offset, cause });
  }

  #advance(length: number): number {
    const from = this.#at;
    this.#at += length;
    return from;
  }
}
