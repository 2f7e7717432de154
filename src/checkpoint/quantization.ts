/**
 * How a quantized checkpoint says what it holds: `quantization_config` in config.json, and for each
 * quantized weight `NAME.weight` its `NAME.codes` (uint8, canonical layout) and `NAME.scales` (float32 per row).
 * Fused weights are one stored weight, the rows of its parts one after another.
 *
 * @module
 */
import { CheckpointError } from "../errors.ts";
import type { Checkpoint } from "./checkpoint.ts";

export const QUANT_METHOD = "halftone";
export const FORMAT_VERSION = 1;
export const RESIDUAL_FILE = "residual.safetensors";

/** How one weight tensor is stored. */
export interface StoredScheme {
  readonly scheme: string;
  readonly shape: readonly [number, number];
  /** Seed of the input's rotation, null for the original basis. */
  readonly rotation: number | null;
  /** The weights whose rows these are, in order, where several are fused into one matrix. */
  readonly parts?: readonly StoredPart[];
}

/** A weight within a fused one. */
export interface StoredPart {
  /** The weight's own name. */
  readonly name: string;
  readonly rows: number;
}

/** Where a weight's rows are. */
export interface StoredPlace {
  /** Name of the stored weight: the weight's own, or that of the fused one. */
  readonly name: string;
  readonly stored: StoredScheme;
  readonly firstRow: number;
}

export interface QuantizationConfig {
  readonly quant_method: typeof QUANT_METHOD;
  readonly version: number;
  /** By tensor name. Tensors that are not named are stored as they are. */
  readonly tensors: Readonly<Record<string, StoredScheme>>;
  /** Where the weights came from. */
  readonly source?: string;
  /** What quantizing lost, in a file beside the weights; see docs/compensation.md. */
  readonly residual?: StoredResidual;
  /** How the float model's channels were scaled before: for people. See docs/palette.md, "Balancing". */
  readonly balance?: Readonly<Record<string, number>>;
  /** How scales and norms were tuned afterwards, and what it brought: for people. See docs/tuning.md. */
  readonly tuning?: Readonly<Record<string, number>>;
}

export interface StoredResidual {
  readonly file: typeof RESIDUAL_FILE;
  /** Bits of a value: 2, 4, 8 or 16. */
  readonly bits: number;
  /** Of what the file holds, see compensation/residualFile.ts: tells the residual of other weights. */
  readonly checksum?: string;
  /** Input channels of 1024 that the model was planned with, by kind of layer: what it is run with unless told otherwise. */
  readonly channels?: Readonly<Record<"qkv" | "o" | "gateUp" | "down", number>>;
}

/** Names of the two tensors that stand for a weight. */
export function quantizedNames(weight: string): { codes: string; scales: string } {
  const stem = weight.replace(/\.weight$/, "");
  return { codes: `${stem}.codes`, scales: `${stem}.scales` };
}

/** `a.q_proj.weight`, `a.k_proj.weight` -> `a.q_proj+k_proj.weight` */
export function fusedName(parts: readonly string[]): string {
  const stems = parts.map((part) => part.replace(/\.weight$/, ""));
  const prefix = stems[0].slice(0, stems[0].lastIndexOf(".") + 1);
  const names = stems.map((stem) => (stem.startsWith(prefix) ? stem.slice(prefix.length) : stem));
  return `${prefix}${names.join("+")}.weight`;
}

/** Where the rows of a weight are stored; undefined when it is not quantized. */
export function storedPlace({ tensors }: QuantizationConfig, weight: string): StoredPlace | undefined {
  if (Object.hasOwn(tensors, weight)) return { name: weight, stored: tensors[weight], firstRow: 0 };
  for (const [name, stored] of Object.entries(tensors)) {
    let firstRow = 0;
    for (const part of stored.parts ?? []) {
      if (part.name === weight) return { name, stored, firstRow };
      firstRow += part.rows;
    }
  }
  return undefined;
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
  const { residual } = config;
  if (residual !== undefined && !isStoredResidual(residual)) throw bad("describes its residual wrongly");
  return config as unknown as QuantizationConfig;
}

function isStoredScheme(value: unknown): value is StoredScheme {
  if (!isRecord(value)) return false;
  const { scheme, shape, rotation, parts } = value;
  const sizes = Array.isArray(shape) && shape.length === 2 && shape.every(isSize);
  const known = typeof scheme === "string" && sizes && (rotation === null || Number.isInteger(rotation));
  return known && (parts === undefined || areParts(parts, shape[0]));
}

function areParts(parts: unknown, rows: number): boolean {
  if (!Array.isArray(parts) || parts.length === 0) return false;
  const whole = parts.every((part) => isRecord(part) && typeof part.name === "string" && isSize(part.rows));
  return whole && parts.reduce((sum, part) => sum + part.rows, 0) === rows;
}

function isSize(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) > 0;
}

function isStoredResidual(value: unknown): value is StoredResidual {
  if (!isRecord(value) || value.file !== RESIDUAL_FILE) return false;
  const { bits, checksum, channels } = value;
  if (checksum !== undefined && typeof checksum !== "string") return false;
  return [2, 4, 8, 16].includes(bits as number) && (channels === undefined || areChannels(channels));
}

function areChannels(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const shares = [value.qkv, value.o, value.gateUp, value.down];
  return shares.every((share) => typeof share === "number" && share >= 0 && share <= 1024);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
