import type { Backend, LinearWeights, QuantizedWeights } from "../backends/backend.ts";
import type { LinearHandle } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { Checkpoint, Tensor } from "../checkpoint/checkpoint.ts";
import {
  type QuantizationConfig,
  quantizationOf,
  quantizedNames,
  type StoredScheme,
} from "../checkpoint/quantization.ts";
import { CheckpointError } from "../errors.ts";
import type { DecoderSpec, LinearSpec, NormSpec } from "../models/decoder.ts";
import { rotationFor } from "../quantizers/hadamard/rotation.ts";
import { quantizerFor } from "../quantizers/registry.ts";
import { parseScheme } from "../quantizers/scheme.ts";

/** How float weights are kept in memory. */
export type FloatScheme = "f32" | "f16";

/** A linear layer in a backend. */
export interface LoadedLinear {
  readonly handle: LinearHandle;
  readonly bias: Slot | undefined;
}

export interface LoadedWeights {
  readonly embedding: LinearHandle;
  readonly head: LinearHandle;
  readonly linears: ReadonlyMap<LinearSpec, LoadedLinear>;
  readonly norms: ReadonlyMap<NormSpec, Slot>;
  /** Bytes of linear weights, embedding and head counted once. */
  readonly byteLength: number;
}

/** Every linear layer of a decoder but embedding and head, in the order of use. */
export function linearSpecs(spec: DecoderSpec): LinearSpec[] {
  return spec.layers.flatMap(({ attention: a, mlp: m }) => [a.q, a.k, a.v, a.o, m.gate, m.up, m.down]);
}

function normSpecs(spec: DecoderSpec): NormSpec[] {
  const layers = spec.layers.flatMap(({ attention, norms }) => [
    ...Object.values(norms),
    attention.qNorm,
    attention.kNorm,
  ]);
  return [...layers, spec.finalNorm].filter((norm) => norm !== undefined);
}

/** The decoder with its head tied to the embedding where the checkpoint has no head of its own. */
export function tieMissingHead(spec: DecoderSpec, checkpoint: Checkpoint): DecoderSpec {
  const present = (name: string) =>
    checkpoint.tensors.has(name) || checkpoint.tensors.has(quantizedNames(name).codes);
  return present(spec.head.weight) ? spec : { ...spec, head: spec.embedding };
}

/** Brings all weights of a decoder into a backend, one tensor at a time. */
export async function loadWeights(
  spec: DecoderSpec,
  checkpoint: Checkpoint,
  backend: Backend,
  floats: FloatScheme,
): Promise<LoadedWeights> {
  const quantization = quantizationOf(checkpoint);
  const reuse = reusedBytes();
  const load = async (linear: LinearSpec) =>
    backend.loadLinear(await linearWeights(linear, checkpoint, quantization, floats, reuse));
  const embedding = await load(spec.embedding);
  const head = spec.head === spec.embedding ? embedding : await load(spec.head);
  let byteLength = embedding.byteLength + (head === embedding ? 0 : head.byteLength);
  const layers = await loadLayers(spec, checkpoint, backend, load);
  for (const { handle } of layers.linears.values()) byteLength += handle.byteLength;
  return { embedding, head, ...layers, byteLength };
}

/** Brings biases, norms and, through `load`, linear weights of a decoder's layers into a backend. */
export async function loadLayers(
  spec: DecoderSpec,
  checkpoint: Checkpoint,
  backend: Backend,
  load: (linear: LinearSpec) => Promise<LinearHandle>,
): Promise<Pick<LoadedWeights, "linears" | "norms">> {
  const linears = new Map<LinearSpec, LoadedLinear>();
  for (const linear of linearSpecs(spec)) {
    const handle = await load(linear);
    const bias = linear.bias
      ? await uploadVector(checkpoint, linear.bias, linear.firstRow ?? 0, linear.rows, 0, backend)
      : undefined;
    linears.set(linear, { handle, bias });
  }
  const norms = new Map<NormSpec, Slot>();
  for (const norm of normSpecs(spec)) {
    norms.set(norm, await uploadVector(checkpoint, norm.weight, 0, norm.size, spec.normOffset, backend));
  }
  return { linears, norms };
}

/** Memory for one tensor's codes at a time: garbage of a model's size would stay in the resident set. */
function reusedBytes(): (length: number) => Uint8Array {
  let buffer = new Uint8Array(0);
  return (length) => {
    if (buffer.length < length) buffer = new Uint8Array(length);
    return buffer.subarray(0, length);
  };
}

/**
 * A linear layer as the checkpoint stores it: float rows read on demand, or codes and scales.
 * The codes lie in what `bytes` gives.
 */
export async function linearWeights(
  { weight, rows, columns, firstRow = 0 }: LinearSpec,
  checkpoint: Checkpoint,
  quantization: QuantizationConfig | undefined,
  floats: FloatScheme,
  bytes: (length: number) => Uint8Array = (length) => new Uint8Array(length),
): Promise<LinearWeights> {
  const stored = quantization?.tensors[weight];
  if (stored) return quantizedWeights({ weight, rows, columns, firstRow }, stored, checkpoint, bytes);
  const tensor = tensorOf(checkpoint, weight);
  if (tensor.shape.length !== 2 || tensor.shape[1] !== columns || tensor.shape[0] < firstRow + rows) {
    throw wrongShape(checkpoint, tensor, [firstRow + rows, columns]);
  }
  return {
    scheme: floats,
    rows,
    columns,
    readRows: (start, end, target) => tensor.readRows(firstRow + start, firstRow + end, target),
  };
}

async function quantizedWeights(
  { weight, rows, columns, firstRow = 0 }: LinearSpec,
  { scheme, shape, rotation }: StoredScheme,
  checkpoint: Checkpoint,
  bytes: (length: number) => Uint8Array,
): Promise<QuantizedWeights> {
  const names = quantizedNames(weight);
  const quantizer = quantizerFor(parseScheme(scheme));
  const [allRows, allColumns] = shape;
  if (allColumns !== columns || allRows < firstRow + rows) {
    throw new CheckpointError(
      checkpoint.source,
      `${weight} is stored as [${shape}], the config asks for ${rows} rows of ${columns}`,
    );
  }
  const codes = tensorOf(checkpoint, names.codes);
  const scales = tensorOf(checkpoint, names.scales);
  const expected = quantizer.codesByteLength(allRows, columns);
  if (codes.byteLength !== expected || !codes.readBytes) throw wrongShape(checkpoint, codes, [expected]);
  if (scales.shape.length !== 1 || scales.shape[0] !== allRows)
    throw wrongShape(checkpoint, scales, [allRows]);
  const from = quantizer.codesByteLength(firstRow, columns);
  const to = quantizer.codesByteLength(firstRow + rows, columns);
  return {
    scheme,
    rows,
    columns,
    codes: (await codes.readBytes(bytes(expected))).subarray(from, to),
    scales: await scales.readRows(firstRow, firstRow + rows),
    rotation: rotation === null ? undefined : rotationFor(columns, rotation),
  };
}

async function uploadVector(
  checkpoint: Checkpoint,
  name: string,
  first: number,
  size: number,
  offset: number,
  backend: Backend,
): Promise<Slot> {
  const tensor = tensorOf(checkpoint, name);
  if (tensor.shape.length !== 1 || tensor.shape[0] < first + size)
    throw wrongShape(checkpoint, tensor, [first + size]);
  const values = await tensor.readRows(first, first + size);
  const slot = backend.reserve(size * 4);
  backend.upload(slot, offset ? values.map((value) => value + offset) : values);
  return slot;
}

function tensorOf(checkpoint: Checkpoint, name: string): Tensor {
  const tensor = checkpoint.tensors.get(name);
  if (tensor) return tensor;
  throw new CheckpointError(checkpoint.source, `tensor ${name} is missing`, {
    remedy: "its config names an architecture that its tensors do not have; export the model again",
  });
}

function wrongShape(checkpoint: Checkpoint, tensor: Tensor, expected: readonly number[]): CheckpointError {
  return new CheckpointError(
    checkpoint.source,
    `tensor ${tensor.name} has shape [${tensor.shape}], its config asks for [${expected}]`,
  );
}
