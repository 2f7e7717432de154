/**
 * Weights that nobody reads: any bits are codes, and which ones does not matter to the time of a product.
 *
 * @module
 */
import type { QuantizedWeights } from "../../backends/backend.ts";
import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import { FORMAT_VERSION, QUANT_METHOD } from "../../checkpoint/quantization.ts";
import { entryBytes, type TensorEntry } from "../../checkpoint/safetensors/header.ts";
import { rowLayout } from "../../checkpoint/shape.ts";
import { fillGaussian } from "../../quantizers/random.ts";
import { quantizerFor } from "../../quantizers/registry.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { keptTensors, storedEntries } from "../quantize/entries.ts";
import { storedWeights, type TensorPlan } from "../quantize/plan.ts";

/** Fills an array with bytes without a pattern. */
export type Filler = (target: Uint8Array) => Uint8Array;

/** A short random run repeated: drawing every byte would take longer than the products. */
export function randomFiller(): Filler {
  const run = new Uint8Array(fillGaussian(new Float32Array(1 << 16), 1).buffer);
  return (target) => {
    for (let at = 0; at < target.length; at += run.length)
      target.set(run.subarray(0, target.length - at), at);
    return target;
  };
}

/** Weights [rows, columns] of a quantized scheme. */
export function randomWeights(scheme: string, rows: number, columns: number, fill: Filler): QuantizedWeights {
  const byteLength = quantizerFor(parseScheme(scheme)).codesByteLength(rows, columns);
  return { scheme, rows, columns, codes: fill(new Uint8Array(byteLength)), scales: scalesOf(rows) };
}

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
    readRows: async (start, end) => scalesOf(end - start),
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

/** Small enough that outputs stay finite. */
function scalesOf(rows: number): Float32Array {
  return new Float32Array(rows).fill(1e-3);
}
