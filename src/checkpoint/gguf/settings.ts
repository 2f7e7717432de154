import { CheckpointError } from "../../errors.ts";
import type { Header } from "./header.ts";
import type { Metadata, NumberArray } from "./metadata.ts";

/** Typed look-ups in metadata; a value of the wrong kind is a CheckpointError naming the key. */
export class Settings {
  readonly file: string;
  readonly #metadata: Metadata;
  readonly #offsets: ReadonlyMap<string, number>;

  constructor(file: string, { metadata, offsets }: Pick<Header, "metadata" | "offsets">) {
    this.file = file;
    this.#metadata = metadata;
    this.#offsets = offsets;
  }

  /** An error about a key, with the place of its value. */
  error(key: string, problem: string): CheckpointError {
    return new CheckpointError(this.file, `metadata ${key} ${problem}`, { offset: this.#offsets.get(key) });
  }

  has(key: string): boolean {
    return this.#metadata.has(key);
  }

  string(key: string): string | undefined {
    const value = this.#metadata.get(key);
    return value === undefined || typeof value === "string" ? value : this.#reject(key, "text");
  }

  boolean(key: string): boolean | undefined {
    const value = this.#metadata.get(key);
    return value === undefined || typeof value === "boolean" ? value : this.#reject(key, "a boolean");
  }

  /** A finite number; float32 values come as the shortest decimal that is the same float32. */
  number(key: string): number | undefined {
    const value = this.#metadata.get(key);
    if (value === undefined) return undefined;
    return typeof value === "number" && Number.isFinite(value)
      ? shortest(value)
      : this.#reject(key, "a finite number");
  }

  /** A count, size or id. */
  integer(key: string): number | undefined {
    const value = this.number(key);
    return value === undefined || (Number.isSafeInteger(value) && value >= 0)
      ? value
      : this.#reject(key, "a count");
  }

  /** A positive count that every layer shares; some files list it once per layer. */
  layerCount(key: string): number | undefined {
    const value = this.#metadata.get(key);
    if (!ArrayBuffer.isView(value)) return this.integer(key);
    const counts = value as NumberArray;
    if (counts.length === 0 || counts.some((count) => count !== counts[0]))
      this.#reject(key, "the same for all layers");
    return counts[0];
  }

  strings(key: string): string[] | undefined {
    const value = this.#metadata.get(key);
    return value === undefined || Array.isArray(value) ? value : this.#reject(key, "a list of texts");
  }

  numbers(key: string): NumberArray | undefined {
    const value = this.#metadata.get(key);
    if (value === undefined) return undefined;
    return ArrayBuffer.isView(value) ? (value as NumberArray) : this.#reject(key, "a list of numbers");
  }

  required<T>(value: T | undefined, key: string): T {
    if (value === undefined) throw this.error(key, "is missing");
    return value;
  }

  #reject(key: string, wanted: string): never {
    throw this.error(key, `is not ${wanted}`);
  }
}

function shortest(value: number): number {
  if (Number.isInteger(value) || Math.fround(value) !== value) return value;
  for (let digits = 6; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (Math.fround(decimal) === value) return decimal;
  }
  return value;
}
