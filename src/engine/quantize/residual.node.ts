import { join } from "node:path";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { fromFloat32 } from "../../checkpoint/dtype.ts";
import { openFile } from "../../checkpoint/node.ts";
import { RESIDUAL_FILE } from "../../checkpoint/quantization.ts";
import { entryBytes, readHeader, type TensorEntry } from "../../checkpoint/safetensors/header.ts";
import { METADATA } from "../../checkpoint/safetensors/shards.ts";
import { createSafetensors } from "../../checkpoint/safetensors/writer.node.ts";
import { type ResidualGroup, residualGroups, residualNames, rowLayoutOf } from "../../compensation/groups.ts";
import { residualChecksum } from "../../compensation/residualFile.ts";
import type { DecoderSpec, LinearSpec } from "../../models/decoder.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import {
  type EncodedResidual,
  type ResidualBits,
  ROW_STEP,
  residualRowBytes,
} from "../../quantizers/residual.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import type { QuantizedRows } from "./job.ts";
import { pipeline } from "./pipeline.ts";
import type { TensorPlan } from "./plan.ts";
import type { Pool } from "./pool.node.ts";

/** Weights of one job, about: a fraction of a second. */
const JOB_VALUES = 2 ** 18;

export interface ResidualRun {
  readonly decoder: DecoderSpec;
  /** The weights as they were. */
  readonly original: Pick<Checkpoint, "tensors">;
  readonly plan: TensorPlan;
  /** Codes and scales of a planned weight. */
  readonly quantized: (weight: string) => Promise<QuantizedRows>;
  /** Where the residual file is written. */
  readonly folder: string;
  readonly bits: ResidualBits;
  readonly pool: Pool;
  readonly onProgress?: (group: string) => void;
  readonly signal?: AbortSignal;
}

export interface WrittenResidual {
  /** Of its tensors. */
  readonly bytes: number;
  /** See {@link residualChecksum}. */
  readonly checksum: string;
}

/** Writes what quantizing took from the layers of a decoder. */
export async function writeResidual(run: ResidualRun): Promise<WrittenResidual> {
  const { decoder, plan, folder, bits, onProgress, signal } = run;
  const groups = residualGroups(decoder, (weight) => plan.has(weight));
  const entries = groups.flatMap((group) => entriesOf(group, bits));
  const path = join(folder, RESIDUAL_FILE);
  const writer = await createSafetensors(path, entries, METADATA);
  try {
    for (const group of groups) {
      onProgress?.(group.name);
      const names = residualNames(group.name);
      const { codes, scales } = await encodeGroup(group, run);
      await writer.write(names.codes, codes);
      await writer.write(names.scales, fromFloat32("F32", scales));
      signal?.throwIfAborted();
    }
    await writer.finish();
  } catch (error) {
    await writer.abort();
    throw error;
  }
  const bytes = entries.reduce((sum, entry) => sum + entryBytes(entry), 0);
  const file = await openFile(path);
  try {
    const stored = new Map((await readHeader(file)).entries.map((entry) => [entry.name, entry]));
    return { bytes, checksum: await residualChecksum(file, stored, groups) };
  } finally {
    await file.close();
  }
}

function entriesOf(group: ResidualGroup, bits: ResidualBits): TensorEntry[] {
  const names = residualNames(group.name);
  const rows = group.members.reduce((sum, member) => sum + member.rows, 0);
  return [
    { name: names.codes, dtype: "U8", shape: [group.columns, rowLayoutOf(group, bits).stride] },
    { name: names.scales, dtype: "F32", shape: [rows] },
  ];
}

/** The members' rows side by side, their scales one after another. */
async function encodeGroup(group: ResidualGroup, run: ResidualRun): Promise<EncodedResidual> {
  const { original, plan, quantized, bits, pool } = run;
  const { columns, members } = group;
  const { offsets, stride } = rowLayoutOf(group, bits);
  const codes = new Uint8Array(columns * stride);
  const scales: number[] = [];
  const jobRows = Math.max(1, Math.floor(JOB_VALUES / (columns * ROW_STEP))) * ROW_STEP;
  type Part = { index: number; member: LinearSpec; rounded: QuantizedRows; row: number };
  async function* parts(): AsyncGenerator<Part> {
    for (const [index, member] of members.entries()) {
      const rounded = await quantized(member.weight);
      for (let row = 0; row < member.rows; row += jobRows) yield { index, member, rounded, row };
    }
  }
  const encode = async ({ member: { weight, firstRow = 0, rows }, rounded, row }: Part) => {
    const [start, end] = [firstRow + row, firstRow + Math.min(rows, row + jobRows)];
    const stored = plan.get(weight)!;
    const quantizer = quantizerFor(parseScheme(stored.scheme));
    const [from, to] = [start, end].map((each) => quantizer.codesByteLength(each, columns));
    return pool.run({
      ...({ kind: "residual", rows: end - start, columns, stored, bits } as const),
      weights: await original.tensors.get(weight)!.readRows(start, end),
      codes: rounded.codes.slice(from, to),
      scales: rounded.scales.slice(start, end),
    });
  };
  for await (const [{ index, row }, part] of pipeline(parts(), 2 * pool.threads, encode)) {
    const rowBytes = part.codes.length / columns;
    const offset = offsets[index] + residualRowBytes(row, bits);
    for (let column = 0; column < columns; column++) {
      codes.set(part.codes.subarray(column * rowBytes, (column + 1) * rowBytes), column * stride + offset);
    }
    scales.push(...part.scales);
  }
  return { codes, scales: Float32Array.from(scales) };
}
