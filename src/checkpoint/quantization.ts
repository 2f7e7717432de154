/**
 * How a quantized checkpoint says what it holds: `quantization_config` in config.json, and beside each
 * quantized weight `NAME.weight` its `NAME.codes` (uint8, canonical layout) and `NAME.scales` (float32 per row).
 *
 * @module
 */
import { CheckpointError } from "../errors.ts";
import type { Checkpoint } from "./checkpoint.ts";

export const QUANT_METHOD = "halftone";
export const FORMAT_VERSION = 1;

/** How one weight tensor is stored. */
export interface StoredScheme {
  readonly scheme: string;
  readonly shape: readonly [number, number];
  /** Seed of the input's rotation, null for the original basis. */
  readonly rotation: number | null;
}

export interface QuantizationConfig {
  readonly quant_method: typeof QUANT_METHOD;
  readonly version: number;
  /** By tensor name. Tensors that are not named are stored as they are. */
  readonly tensors: Readonly<Record<string, StoredScheme>>;
  /** Where the weights came from. */
  readonly source?: string;
}

/** Names of the two tensors that stand for a weight. */
export function quantizedNames(weight: string): { codes: string; scales: string } {
  const stem = weight.replace(/\.weight$/, "");
  return { codes: `${stem}.codes`, scales: `${stem}.scales` };
}

/** The quantization of a checkpoint, undefined when it has none of ours. Throws when it is malformed or newer than we are. */
export function quantizationOf(checkpoint: Checkpoint): QuantizationConfig | undefined {
  const config = checkpoint.config.quantization_config;
  if (!isRecord(config) || config.quant_method !== QUANT_METHOD) return undefined;
  const bad = (problem: string, remedy?: string) =>
    new CheckpointError(checkpoint.source, `quantization_config of its config.json ${problem}`, { remedy });
  if (config.version !== FORMAT_VERSION) {
    throw bad(
      `has version ${String(config.version)}, this Halftone reads ${FORMAT_VERSION}`,
      "update halftone",
    );
  }
  if (!isRecord(config.tensors)) throw bad("names no tensors");
  for (const [name, stored] of Object.entries(config.tensors)) {
    if (!isStoredScheme(stored)) throw bad(`describes ${name} wrongly`);
  }
  return config as unknown as QuantizationConfig;
}

function isStoredScheme(value: unknown): value is StoredScheme {
  if (!isRecord(value)) return false;
  const { scheme, shape, rotation } = value;
  const sizes =
    Array.isArray(shape) && shape.length === 2 && shape.every((n) => Number.isInteger(n) && n > 0);
  return typeof scheme === "string" && sizes && (rotation === null || Number.isInteger(rotation));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
