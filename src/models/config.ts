import { CheckpointError } from "../errors.ts";

/** The names of a checkpoint's tensors, e.g. `Checkpoint.tensors`. */
export interface TensorNames {
  has(name: string): boolean;
}

/** config.json of a checkpoint, read with checks: every getter names the file and key it misses. */
export class ModelConfig {
  readonly source: string;
  readonly values: Readonly<Record<string, unknown>>;

  constructor(source: string, values: Readonly<Record<string, unknown>>) {
    this.source = source;
    this.values = values;
  }

  /** The same config with `defaults` where a key is absent; an explicit null stays null, as in transformers. */
  withDefaults(defaults: Readonly<Record<string, unknown>>): ModelConfig {
    return new ModelConfig(this.source, { ...defaults, ...this.values });
  }

  /** Neither absent nor null. */
  has(key: string): boolean {
    return this.values[key] !== undefined && this.values[key] !== null;
  }

  /** A positive integer no larger than `limit`. */
  size(key: string, fallback?: number, limit = 1 << 24): number {
    const value = this.number(key, fallback);
    if (!Number.isInteger(value) || value < 1 || value > limit) {
      throw this.error(key, `is ${value}, expected an integer from 1 to ${limit}`);
    }
    return value;
  }

  number(key: string, fallback?: number): number {
    const value = this.has(key) ? this.values[key] : fallback;
    if (typeof value !== "number" || !Number.isFinite(value)) {
      throw this.error(
        key,
        value === undefined ? "is missing" : `is ${JSON.stringify(value)}, expected a number`,
      );
    }
    return value;
  }

  /** A number above 0. */
  positive(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    if (value <= 0) throw this.error(key, `is ${value}, expected a number above 0`);
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.has(key) ? this.values[key] : fallback;
    if (typeof value !== "boolean")
      throw this.error(key, `is ${JSON.stringify(value)}, expected true or false`);
    return value;
  }

  text(key: string, fallback?: string): string {
    const value = this.has(key) ? this.values[key] : fallback;
    if (typeof value !== "string") {
      throw this.error(
        key,
        value === undefined ? "is missing" : `is ${JSON.stringify(value)}, expected a string`,
      );
    }
    return value;
  }

  numbers(key: string): number[] {
    return this.list(key, "numbers", (item) => typeof item === "number" && Number.isFinite(item));
  }

  texts(key: string): string[] {
    return this.list(key, "strings", (item) => typeof item === "string");
  }

  private list<Item>(key: string, kind: string, fits: (item: unknown) => boolean): Item[] {
    const value = this.values[key];
    if (!Array.isArray(value) || !value.every(fits))
      throw this.error(key, this.has(key) ? `is no list of ${kind}` : "is missing");
    return value;
  }

  /** A nested object, undefined when absent. */
  object(key: string): ModelConfig | undefined {
    const value = this.values[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "object" || Array.isArray(value)) throw this.error(key, "is no object");
    return new ModelConfig(this.source, value as Record<string, unknown>);
  }

  error(key: string, problem: string): CheckpointError {
    return new CheckpointError(this.source, `"${key}" of its config ${problem}`, {
      remedy: "correct config.json or fetch the model again",
    });
  }
}
