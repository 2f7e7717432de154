import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { fromFloat32 } from "../../checkpoint/dtype.ts";
import { writeModelFiles } from "../../checkpoint/modelFiles.node.ts";
import { createFolder } from "../../checkpoint/outputFolder.node.ts";
import {
  FORMAT_VERSION,
  QUANT_METHOD,
  type QuantizationConfig,
  quantizedNames,
  type StoredScheme,
} from "../../checkpoint/quantization.ts";
import { entryBytes, type TensorEntry } from "../../checkpoint/safetensors/header.ts";
import { createModelSafetensors, type SafetensorsWriter } from "../../checkpoint/safetensors/writer.node.ts";
import { rowLayout } from "../../checkpoint/shape.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { planTensors, type QuantizeOptions } from "./plan.ts";
import { quantizeRows } from "./tensor.ts";

/** Weights quantized at once: bounds the memory. */
const CHUNK_VALUES = 2 ** 21;
/** Rows are cut at multiples of this, which every quantizer's blocks divide. */
const ROW_UNIT = 16;

export interface QuantizeProgress {
  readonly tensor: string;
  /** Weights done and in all. */
  readonly done: number;
  readonly total: number;
}

export interface QuantizeRun extends QuantizeOptions {
  readonly onProgress?: (progress: QuantizeProgress) => void;
  readonly signal?: AbortSignal;
}

export interface QuantizeResult {
  readonly folder: string;
  /** Quantized weights, and all. */
  readonly quantizedWeights: number;
  readonly weights: number;
  /** Bits per weight over all tensors, scales included. */
  readonly bitsPerWeight: number;
  /** Over the linear layers alone, embedding and head left out. */
  readonly linearBitsPerWeight: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  readonly seconds: number;
}

/** Quantizes a checkpoint into a new folder, a few rows at a time. Nothing is left when it fails. */
export async function quantizeCheckpoint(
  checkpoint: Checkpoint,
  folder: string,
  run: QuantizeRun,
): Promise<QuantizeResult> {
  const started = performance.now();
  const plan = planTensors(checkpoint, run);
  // A head that the config ties to the embedding is dead weight.
  const tensors = [...checkpoint.tensors.values()].filter(
    ({ name }) => name !== "lm_head.weight" || checkpoint.config.tie_word_embeddings !== true,
  );
  const entries = tensors.flatMap((tensor) => storedEntries(tensor, plan.get(tensor.name)));
  const total = sum(tensors.map(({ shape }) => elements(shape)));
  const output = await createFolder(folder);
  let writer: SafetensorsWriter | undefined;
  try {
    await writeModelFiles(output.path, checkpoint, configOf(checkpoint, plan));
    writer = await createModelSafetensors(output.path, entries);
    let done = 0;
    for (const tensor of tensors) {
      for await (const weights of writeTensor(tensor, plan.get(tensor.name), writer)) {
        run.signal?.throwIfAborted();
        done += weights;
        run.onProgress?.({ tensor: tensor.name, done, total });
      }
    }
    await writer.finish();
    await output.finish();
  } catch (error) {
    await writer?.abort();
    await output.abort();
    throw error;
  }
  const bytesAfter = sum(entries.map(entryBytes));
  const linear = tensors.filter(({ name }) => plan.has(name) && !/embed_tokens|lm_head/.test(name));
  const linearBytes = sum(
    linear.flatMap((tensor) => storedEntries(tensor, plan.get(tensor.name)).map(entryBytes)),
  );
  return {
    folder,
    quantizedWeights: sum([...plan.values()].map(({ shape }) => elements(shape))),
    weights: total,
    bitsPerWeight: (8 * bytesAfter) / total,
    linearBitsPerWeight: (8 * linearBytes) / sum(linear.map(({ shape }) => elements(shape))),
    bytesBefore: sum(tensors.map(({ byteLength }) => byteLength)),
    bytesAfter,
    seconds: (performance.now() - started) / 1000,
  };
}

function configOf(checkpoint: Checkpoint, plan: ReadonlyMap<string, StoredScheme>): Record<string, unknown> {
  const quantization: QuantizationConfig = {
    quant_method: QUANT_METHOD,
    version: FORMAT_VERSION,
    source: checkpoint.source,
    tensors: Object.fromEntries(plan),
  };
  return { ...checkpoint.config, quantization_config: quantization };
}

function storedEntries(tensor: Tensor, stored: StoredScheme | undefined): TensorEntry[] {
  if (!stored) return [{ name: tensor.name, dtype: "F32", shape: tensor.shape }];
  const { codes, scales } = quantizedNames(tensor.name);
  const [rows, columns] = stored.shape;
  const codeBytes = quantizerFor(parseScheme(stored.scheme)).codesByteLength(rows, columns);
  return [
    { name: codes, dtype: "U8", shape: [codeBytes] },
    { name: scales, dtype: "F32", shape: [rows] },
  ];
}

/** Writes a tensor piece by piece; yields how many weights each piece held. */
async function* writeTensor(
  tensor: Tensor,
  stored: StoredScheme | undefined,
  writer: SafetensorsWriter,
): AsyncGenerator<number> {
  const { rows, rowSize } = rowLayout(tensor.shape);
  const names = quantizedNames(tensor.name);
  const step = Math.max(1, Math.floor(CHUNK_VALUES / Math.max(1, rowSize * ROW_UNIT))) * ROW_UNIT;
  let [at, codesAt] = [0, 0];
  for (let row = 0; row < rows; row += step) {
    const end = Math.min(row + step, rows);
    const values = await tensor.readRows(row, end);
    if (stored) {
      const { codes, scales } = quantizeRows(values, end - row, rowSize, stored);
      await writer.write(names.codes, codes, codesAt);
      await writer.write(names.scales, fromFloat32("F32", scales), row * 4);
      codesAt += codes.length;
    } else {
      const bytes = fromFloat32("F32", values);
      await writer.write(tensor.name, bytes, at);
      at += bytes.length;
    }
    yield (end - row) * rowSize;
  }
}

function elements(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
