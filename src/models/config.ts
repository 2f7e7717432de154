import { CheckpointError } from "../errors.ts";

/** config.json of a checkpoint, read with checks: every getter names the file and key it misses. */
export class ModelConfig {
  readonly source: string;
  readonly values: Readonly<Record<string, unknown>>;

  constructor(source: string, values: Readonly<Record<string, unknown>>) {
    this.source = source;
    this.values = values;
  }

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
    const value = this.values[key];
    if (!Array.isArray(value) || !value.every((item) => typeof item === "number" && Number.isFinite(item))) {
      throw this.error(key, value === undefined ? "is missing" : "is no list of numbers");
    }
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
