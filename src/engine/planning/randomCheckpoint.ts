import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { FORMAT_VERSION, QUANT_METHOD } from "../../checkpoint/quantization.ts";
import { entryBytes, type TensorEntry } from "../../checkpoint/safetensors/header.ts";
import { rowLayout } from "../../checkpoint/shape.ts";
import { type Filler, smallScales } from "../../quantizers/randomMatrix.ts";
import { keptTensors, storedEntries } from "../quantize/entries.ts";
import { storedWeights, type TensorPlan } from "../quantize/plan.ts";

/** A checkpoint with the shapes of another one as a plan stores it: vectors are the other's, the rest is random. */
export function randomCheckpoint(checkpoint: Checkpoint, plan: TensorPlan, fill: Filler): Checkpoint {
  const tensors = new Map<string, Tensor>();
  for (const tensor of keptTensors(checkpoint)) {
    if (!plan.has(tensor.name)) tensors.set(tensor.name, tensor.shape.length === 1 ? tensor : zeros(tensor));
    for (const entry of storedEntries(tensor, plan)) {
      if (!tensors.has(entry.name)) tensors.set(entry.name, randomTensor(entry, fill));
    }
  }
  const quantization = {
    quant_method: QUANT_METHOD,
    version: FORMAT_VERSION,
    tensors: Object.fromEntries(storedWeights(plan)),
  };
  return {
    ...checkpoint,
    config: { ...checkpoint.config, quantization_config: quantization },
    tensors,
    close: async () => {},
  };
}

function randomTensor(entry: TensorEntry, fill: Filler): Tensor {
  const byteLength = entryBytes(entry);
  return {
    name: entry.name,
    shape: entry.shape,
    encoding: entry.dtype,
    byteLength,
    readRows: async (start, end) => smallScales(end - start),
    readBytes: async (target) => fill(target ?? new Uint8Array(byteLength)),
  };
}

function zeros(tensor: Tensor): Tensor {
  const { rowSize } = rowLayout(tensor.shape);
  return {
    ...tensor,
    readRows: async (start, end, target) => target ?? new Float32Array((end - start) * rowSize),
  };
}
