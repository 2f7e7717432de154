/**
 * The file beside a quantized model that holds what quantizing took from its layers; docs/compensation.md has its format.
 *
 * @module
 */
import type { ResidualSource } from "../backends/backend.ts";
import type { ByteSource, Checkpoint } from "../checkpoint/checkpoint.ts";
import { quantizationOf, storedPlace } from "../checkpoint/quantization.ts";
import { readHeader, type StoredEntry } from "../checkpoint/safetensors/header.ts";
import { CheckpointError, UnsupportedError } from "../errors.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import type { ResidualBits } from "../quantizers/residual.ts";
import { type ResidualGroup, residualGroups, residualNames, rowLayoutOf } from "./groups.ts";
import { type ChannelShares, refused } from "./settings.ts";

/** Where residual rows are while a model runs: in the backend's memory, or in the file. */
export type ResidualStore = "memory" | "file";

export interface ResidualPlace {
  /** Default `memory`. */
  readonly store?: ResidualStore;
}

export interface ResidualFile {
  readonly bits: ResidualBits;
  /** Channels that the model was planned with. */
  readonly channels?: ChannelShares;
  readonly groups: readonly { readonly group: ResidualGroup; readonly source: ResidualSource }[];
  close(): Promise<void>;
}

const WITHOUT = "or run without compensation (--no-compensation)";

/** What layers and residual are like, as far as times depend on it: the same text for models that are alike. */
export function layersKey({ bits, groups }: Pick<ResidualFile, "bits" | "groups">): string {
  const kinds = groups.map(
    ({ group: { kind, columns, members } }) =>
      `${kind} ${members.map(({ rows }) => rows).join("+")}x${columns}`,
  );
  const place = groups[0]?.source.file ? " in the file" : "";
  return `${bits} bits${place}, ${groups.length} inputs: ${[...new Set(kinds)].join(", ")}`;
}

/** Opens the residual of a quantized checkpoint; undefined when it names none. Headers and scales are read, no rows. */
export async function openResidual(
  checkpoint: Checkpoint,
  decoder: DecoderSpec,
  { store = "memory" }: ResidualPlace = {},
): Promise<ResidualFile | undefined> {
  if (store !== "memory" && store !== "file") throw refused("store", store, "memory or file");
  const quantization = quantizationOf(checkpoint);
  if (!quantization?.residual) return undefined;
  const { file, channels, checksum } = quantization.residual;
  const bits = quantization.residual.bits as ResidualBits;
  const source = await checkpoint.openFile?.(file);
  if (!source) {
    throw new CheckpointError(checkpoint.source, `its config.json names ${file}, which is not beside it`, {
      remedy: `restore the file, ${WITHOUT}`,
    });
  }
  try {
    const { descriptor } = source;
    if (store === "file" && descriptor === undefined) {
      throw new UnsupportedError(
        `${source.name}: this host cannot read rows from it in the middle of a step; keep them in memory`,
      );
    }
    const entries = new Map((await readHeader(source)).entries.map((entry) => [entry.name, entry]));
    const found = residualGroups(decoder, (weight) => storedPlace(quantization, weight) !== undefined);
    const groups = await Promise.all(
      found.map(async (group) => {
        const residual = await sourceOf(group, bits, entries, source);
        const read = async (target: Uint8Array) => {
          try {
            await residual.read(target);
          } catch (error) {
            throw unusable(checkpoint, error);
          }
        };
        if (store === "memory") return { group, source: { ...residual, read } };
        const { offset: position } = entries.get(residualNames(group.name).codes)!;
        const rows = { name: source.name, descriptor: descriptor!, position };
        return { group, source: { ...residual, file: rows } };
      }),
    );
    if (checksum !== undefined && checksum !== (await residualChecksum(source, entries, found))) {
      throw damaged(source, "it was made for other weights than those beside it");
    }
    return { bits, channels, groups, close: () => source.close() };
  } catch (error) {
    await source.close();
    throw unusable(checkpoint, error);
  }
}

/**
 * FNV-1a (32 bits, in hex) over the first row of each input and its scales: tells the residuals of other weights of the
 * same shapes apart without reading them.
 */
export async function residualChecksum(
  file: ByteSource,
  entries: ReadonlyMap<string, StoredEntry>,
  groups: readonly ResidualGroup[],
): Promise<string> {
  let hash = 0x811c9dc5;
  for (const { name } of groups) {
    const names = residualNames(name);
    const [codes, scales] = [entries.get(names.codes)!, entries.get(names.scales)!];
    const row = await file.read(codes.offset, codes.byteLength / codes.shape[0]);
    for (const part of [row, await file.read(scales.offset, scales.byteLength)]) {
      for (const byte of part) hash = Math.imul(hash ^ byte, 0x01000193);
    }
  }
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** What is wrong with the file, and that the model runs without it. */
function unusable({ source }: Checkpoint, error: unknown): unknown {
  if (!(error instanceof CheckpointError) || error.message.includes(WITHOUT)) return error;
  return new CheckpointError(source, `its residual is of no use (${error.message})`, {
    remedy: `quantize the model again, ${WITHOUT}`,
    cause: error,
  });
}

async function sourceOf(
  group: ResidualGroup,
  bits: ResidualBits,
  entries: ReadonlyMap<string, StoredEntry>,
  file: ByteSource,
): Promise<ResidualSource> {
  const { columns } = group;
  const { offsets, stride } = rowLayoutOf(group, bits);
  const names = residualNames(group.name);
  const outputs = group.members.reduce((sum, { rows }) => sum + rows, 0);
  const codes = required(entries, names.codes, "U8", [columns, stride], file);
  const { offset, byteLength } = required(entries, names.scales, "F32", [outputs], file);
  const scales = new Float32Array(new Uint8Array(await file.read(offset, byteLength)).buffer);
  if (!scales.every((scale) => Number.isFinite(scale) && scale >= 0)) {
    throw damaged(file, `${names.scales} holds a scale that is negative or no number`, offset);
  }
  let first = 0;
  const members = group.members.map(({ rows }, i) => {
    const member = { rows, offset: offsets[i], scales: scales.subarray(first, first + rows) };
    first += rows;
    return member;
  });
  const read = (target: Uint8Array) => file.read(codes.offset, columns * stride, target);
  return { bits, columns, stride, members, read };
}

function required(
  entries: ReadonlyMap<string, StoredEntry>,
  name: string,
  dtype: string,
  shape: readonly number[],
  file: ByteSource,
): StoredEntry {
  const entry = entries.get(name);
  if (!entry) throw damaged(file, `tensor ${name} is missing`);
  if (entry.dtype !== dtype || entry.shape.join() !== shape.join()) {
    throw damaged(
      file,
      `tensor ${name} is ${entry.dtype} [${entry.shape}], the model asks for ${dtype} [${shape}]`,
      entry.offset,
    );
  }
  return entry;
}

function damaged(file: ByteSource, problem: string, offset?: number): CheckpointError {
  return new CheckpointError(file.name, problem, {
    offset,
    remedy: `quantize the model again with its residual, ${WITHOUT}`,
  });
}
