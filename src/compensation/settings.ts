/**
 * How much is compensated, and which channels.
 *
 * @module
 */
import { UsageError } from "../errors.ts";
import { LAYER_KINDS, type LayerKind } from "./groups.ts";

/**
 * How input channels are chosen: the largest inputs of a token, exactly or by buckets (DecDEC, section 4.3); those of most
 * energy, the same for all tokens; or at random. The last two are there to compare with.
 */
export const SELECTIONS = ["exact", "bucket", "static", "random"] as const;
export type Selection = (typeof SELECTIONS)[number];

/** Input channels compensated per 1024, by kind of layer. */
export type ChannelShares = Readonly<Record<LayerKind, number>>;

export interface CompensationSettings {
  readonly channels: ChannelShares;
  readonly select: Selection;
  /** Threads that read rows from a file, while the others multiply already. Default all. */
  readonly readers?: number;
}

/** What tuning found for a model on a machine. */
export type TunedSettings = Pick<CompensationSettings, "channels" | "readers">;

/** One in 32 channels: 3.1%. */
export const DEFAULT_CHANNELS = 32;

/** The same share for all layers. */
export function uniformShares(channels: number): ChannelShares {
  return Object.fromEntries(LAYER_KINDS.map((kind) => [kind, channels])) as Record<LayerKind, number>;
}

/** The settings, if they can be used: who calls from JavaScript may give anything. Throws a UsageError. */
export function checkSettings(settings: CompensationSettings): CompensationSettings {
  const { channels, select, readers = 1 } = settings;
  if (!LAYER_KINDS.every((kind) => channels[kind] >= 0 && channels[kind] <= 1024)) {
    const kinds = LAYER_KINDS.join(", ");
    throw refused("channels", channels, `0 to 1024 for each of ${kinds}`);
  }
  if (!SELECTIONS.includes(select)) throw refused("select", select, `one of ${SELECTIONS.join(", ")}`);
  if (!Number.isInteger(readers) || readers < 1)
    throw refused("readers", readers, "a number of threads from 1");
  return settings;
}

/** For what is no {@link CompensationSettings}, nor a place of its rows. */
export function refused(option: string, value: unknown, wanted: string): UsageError {
  return new UsageError(`compensation.${option} is ${JSON.stringify(value)}: give ${wanted}`);
}

/** Reads `32` (of 1024), `3.1%`, or four of either for qkv, o, gate and up, down: `16,16,48,48`. */
export function parseShares(text: string, from: string): ChannelShares {
  const parts = text.split(",").map((part) => {
    const match = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(part);
    const value = match ? Number(match[1]) * (match[2] ? 10.24 : 1) : Number.NaN;
    return value <= 1024 ? value : Number.NaN;
  });
  if (parts.some(Number.isNaN) || (parts.length !== 1 && parts.length !== LAYER_KINDS.length)) {
    throw new UsageError(
      `${from} is ${JSON.stringify(text)}; give input channels of 1024 or a share, e.g. 32 or 3.1%, or four of them for qkv, o, gate/up and down`,
    );
  }
  return Object.fromEntries(
    LAYER_KINDS.map((kind, i) => [kind, parts[parts.length === 1 ? 0 : i]]),
  ) as Record<LayerKind, number>;
}

/** For people: `qkv 32, o 16, gateUp 8, down 32`. */
export function formatShares(channels: ChannelShares): string {
  return LAYER_KINDS.map((kind) => `${kind} ${channels[kind]}`).join(", ");
}

/**
 * How much calibration for compensation heeds all inputs beside what compensation leaves to the weights: best at 2 and 3
 * bits by trial, a straight line between and beyond.
 */
export function blendOf(bits: number): number {
  return Math.min(1, Math.max(0.1, 0.2 * bits - 0.3));
}

/** Reads `5%` or `.05`, from 0 to 100%. */
export function parseShare(text: string, from: string): number {
  const match = /^\s*(\d*\.?\d+)\s*(%?)\s*$/.exec(text);
  const value = match ? Number(match[1]) * (match[2] ? 0.01 : 1) : Number.NaN;
  if (value > 0 && value <= 1) return value;
  throw new UsageError(`${from} is ${JSON.stringify(text)}; give a share such as 5%`);
}

/** Channels of an input of `columns`. */
export function channelsOf(columns: number, per1024: number): number {
  return Math.min(columns, Math.round((columns * per1024) / 1024));
}
