import { CheckpointError, UnsupportedError } from "../errors.ts";
import type { Checkpoint, Tensor } from "./checkpoint.ts";
import { type Dtype, fromFloat32, isDtype } from "./dtype.ts";
import { isJsonObject } from "./json.ts";
import { writeModelFiles } from "./modelFiles.node.ts";
import { createFolder } from "./outputFolder.node.ts";
import type { TensorEntry } from "./safetensors/header.ts";
import { createModelSafetensors, type SafetensorsWriter } from "./safetensors/writer.node.ts";
import { rowLayout } from "./shape.ts";

/** Values converted at once: bounds the memory of a conversion. */
const CHUNK_VALUES = 2 ** 22;

const TARGETS = {
  f32: { dtype: "F32", name: "float32" },
  f16: { dtype: "F16", name: "float16" },
  bf16: { dtype: "BF16", name: "bfloat16" },
} as const;

export interface ConvertOptions {
  /** Element type of the weights written. */
  dtype: keyof typeof TARGETS;
  /** Most tensor bytes in one file, default 4 GB. */
  maxShardBytes?: number;
  /** Called after each tensor. */
  onTensor?: (name: string, done: number, total: number) => void;
}

/**
 * Writes a checkpoint of any format as a Hugging Face folder, dequantized. Tensors are streamed; the folder
 * appears when it is complete, and nothing is left on failure. Throws a UsageError when the folder exists
 * and is not empty, an UnsupportedError when a weight cannot be stored in the type asked for.
 */
export async function convertCheckpoint(
  checkpoint: Checkpoint,
  folder: string,
  { dtype, maxShardBytes, onTensor }: ConvertOptions,
): Promise<void> {
  const quantization = checkpoint.config.quantization_config;
  if (isJsonObject(quantization)) {
    const method = String(quantization.quant_method);
    throw new UnsupportedError(
      `${checkpoint.source}: weights quantized by ${method} are not converted; name its source`,
    );
  }
  const target = TARGETS[dtype];
  const entries = [...checkpoint.tensors].map(([name, tensor]): TensorEntry => {
    if (name === "__metadata__") throw new CheckpointError(checkpoint.source, `a tensor is named ${name}`);
    return { name, dtype: storedUnchanged(tensor) ?? target.dtype, shape: tensor.shape };
  });
  const output = await createFolder(folder);
  let writer: SafetensorsWriter | undefined;
  try {
    const { torch_dtype: old } = checkpoint.config;
    const config = {
      ...checkpoint.config,
      dtype: target.name,
      ...(old === undefined ? {} : { torch_dtype: target.name }),
    };
    await writeModelFiles(output.path, checkpoint, config);
    writer = await createModelSafetensors(output.path, entries, { maxShardBytes });
    let done = 0;
    for (const [name, tensor] of checkpoint.tensors) {
      await writeTensor(writer, name, tensor, target.dtype);
      onTensor?.(name, ++done, checkpoint.tensors.size);
    }
    await writer.finish();
    await output.finish();
  } catch (error) {
    await writer?.abort();
    await output.abort();
    throw error;
  }
}

/** Integers in a float model are counters and tables, no weights: their type is kept. */
function storedUnchanged(tensor: Tensor): Dtype | undefined {
  const { encoding } = tensor;
  const isInteger = /^[IU]\d+$|^BOOL$/.test(encoding);
  return tensor.readBytes !== undefined && isInteger && isDtype(encoding) ? encoding : undefined;
}

async function writeTensor(
  writer: SafetensorsWriter,
  name: string,
  tensor: Tensor,
  dtype: "F32" | "F16" | "BF16",
): Promise<void> {
  if (storedUnchanged(tensor) !== undefined && tensor.readBytes !== undefined) {
    await writer.write(name, await tensor.readBytes());
    return;
  }
  const { rows, rowSize } = rowLayout(tensor.shape);
  if (rowSize === 0) return;
  const step = Math.max(1, Math.floor(CHUNK_VALUES / rowSize));
  const scratch = new Float32Array(Math.min(step, rows) * rowSize);
  let at = 0;
  for (let row = 0; row < rows; row += step) {
    const values = await tensor.readRows(row, Math.min(row + step, rows), scratch);
    const bytes = fromFloat32(dtype, values);
    if (dtype === "F16") checkRange(name, values, bytes);
    await writer.write(name, bytes, at);
    at += bytes.length;
  }
}

function checkRange(name: string, values: Float32Array, bytes: Uint8Array): void {
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, values.length);
  for (let i = 0; i < halves.length; i++) {
    if ((halves[i] & 0x7fff) === 0x7c00 && Number.isFinite(values[i])) {
      throw new UnsupportedError(`${name} holds ${values[i]}, too large for f16; choose bf16 or f32`);
    }
  }
}
