import { type Backend, type LinearWeights, type QuantizedWeights, SLICE_ROWS } from "../backends/backend.ts";
import type { LinearHandle } from "../backends/operation.ts";
import type { Slot } from "../backends/slot.ts";
import type { Checkpoint, Tensor } from "../checkpoint/checkpoint.ts";
import {
  type QuantizationConfig,
  quantizationOf,
  quantizedNames,
  type StoredPlace,
  storedPlace,
} from "../checkpoint/quantization.ts";
import { CheckpointError } from "../errors.ts";
import { groupBy } from "../groupBy.ts";
import type { DecoderSpec, LinearSpec, NormSpec } from "../models/decoder.ts";
import { rotationFor } from "../quantizers/hadamard/rotation.ts";
import { quantizerFor } from "../quantizers/registry.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import type { Residuals } from "./residuals.ts";

/** How float weights are kept in memory. */
export type FloatScheme = "f32" | "f16";

/** A linear layer in a backend. */
export interface LoadedLinear {
  readonly handle: LinearHandle;
  readonly bias: Slot | undefined;
}

/** Linear layers of one input that are stored as one matrix. */
export interface FusedLinear extends LoadedLinear {
  /** In the order of their rows. */
  readonly parts: readonly LinearSpec[];
}

export interface LoadedWeights {
  readonly embedding: LinearHandle;
  readonly head: LinearHandle;
  /** Every linear layer by itself; fused ones as slices. */
  readonly linears: ReadonlyMap<LinearSpec, LoadedLinear>;
  /** By their first parts. */
  readonly fused: ReadonlyMap<LinearSpec, FusedLinear>;
  readonly norms: ReadonlyMap<NormSpec, Slot>;
  /** What quantizing took from the layers, where it is kept. */
  readonly residuals?: Residuals;
  /** Bytes of linear weights, embedding and head counted once. */
  readonly byteLength: number;
}

/** Every linear layer of a decoder but embedding and head, in the order of use. */
export function linearSpecs(spec: DecoderSpec): LinearSpec[] {
  return spec.layers.flatMap(({ attention: a, mlp: m }) => [a.q, a.k, a.v, a.o, m.gate, m.up, m.down]);
}

/** Linear layers that multiply the same input, where a block has several such. */
export function sharedInputs({ layers }: Pick<DecoderSpec, "layers">): LinearSpec[][] {
  return layers.flatMap(({ attention: { q, k, v }, mlp: { gate, up } }) => [
    [q, k, v],
    [gate, up],
  ]);
}

/** Every norm of a decoder, in the order of use. */
export function normSpecs(spec: DecoderSpec): NormSpec[] {
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
  const wholes = new Map<LinearSpec, { whole: LinearHandle; parts: readonly LinearSpec[] }>();
  const sets = new Map(fusedSpecs(spec, quantization).flatMap((set) => set.map((part) => [part, set])));
  const loadAlone = async (linear: LinearSpec) =>
    backend.loadLinear(await linearWeights(linear, checkpoint, quantization, floats, reuse));
  const load = async (linear: LinearSpec) => {
    const parts = sets.get(linear);
    if (!parts) return loadAlone(linear);
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    const whole = wholes.get(parts[0])?.whole ?? (await loadAlone({ ...parts[0], rows }));
    wholes.set(parts[0], { whole, parts });
    const before = parts.slice(0, parts.indexOf(linear)).reduce((sum, part) => sum + part.rows, 0);
    return backend.sliceLinear(whole, before, linear.rows);
  };
  const embedding = await load(spec.embedding);
  const head = spec.head === spec.embedding ? embedding : await load(spec.head);
  let byteLength = embedding.byteLength + (head === embedding ? 0 : head.byteLength);
  const layers = await loadLayers(spec, checkpoint, backend, load);
  for (const { handle } of layers.linears.values()) byteLength += handle.byteLength;
  const fused = new Map<LinearSpec, FusedLinear>();
  for (const [first, { whole, parts }] of wholes) {
    fused.set(first, { handle: whole, parts, bias: await uploadBiases(parts, checkpoint, backend) });
  }
  return { embedding, head, ...layers, fused, byteLength };
}

/** Gives the memory of float weights back. */
export function freeWeights({ embedding, head, linears, norms }: LoadedWeights, backend: Backend): void {
  const handles = [embedding, head, ...Array.from(linears.values(), ({ handle }) => handle)];
  for (const handle of new Set(handles)) backend.freeLinear(handle);
  for (const { bias } of linears.values()) if (bias) backend.free(bias);
  for (const norm of norms.values()) backend.free(norm);
}

/** Layers of one input whose rows are next to each other in one quantized tensor, as sets in the order of the rows. */
function fusedSpecs(spec: DecoderSpec, quantization: QuantizationConfig | undefined): LinearSpec[][] {
  if (!quantization) return [];
  return sharedInputs(spec).flatMap((group) => {
    const placed = group.flatMap((linear) => {
      const place = storedPlace(quantization, linear.weight);
      return place ? [{ linear, name: place.name, row: place.firstRow + (linear.firstRow ?? 0) }] : [];
    });
    const sets = groupBy(placed, ({ name }) => name).values();
    return [...sets].flatMap((set) => {
      set.sort((a, b) => a.row - b.row);
      const adjacent = set.every(
        ({ row }, i) =>
          row % SLICE_ROWS === 0 && (i === 0 || row === set[i - 1].row + set[i - 1].linear.rows),
      );
      return set.length > 1 && adjacent ? [set.map(({ linear }) => linear)] : [];
    });
  });
}

/** The biases of fused layers side by side, 0 where a layer has none. */
async function uploadBiases(
  parts: readonly LinearSpec[],
  checkpoint: Checkpoint,
  backend: Backend,
): Promise<Slot | undefined> {
  if (parts.every(({ bias }) => bias === undefined)) return undefined;
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const slot = backend.allocate(rows * 4);
  let row = 0;
  for (const part of parts) {
    if (part.bias) {
      const values = await vectorOf(checkpoint, part.bias, part.firstRow ?? 0, part.rows);
      backend.upload(slot, values, row * 4);
    }
    row += part.rows;
  }
  return slot;
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
  const place = quantization && storedPlace(quantization, weight);
  if (place) {
    const first = place.firstRow + firstRow;
    return quantizedWeights({ weight, rows, columns, firstRow: first }, place, checkpoint, bytes);
  }
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
  { name, stored: { scheme, shape, rotation } }: StoredPlace,
  checkpoint: Checkpoint,
  bytes: (length: number) => Uint8Array,
): Promise<QuantizedWeights> {
  const names = quantizedNames(name);
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
  const values = await vectorOf(checkpoint, name, first, size);
  const slot = backend.reserve(size * 4);
  backend.upload(slot, offset ? values.map((value) => value + offset) : values);
  return slot;
}

async function vectorOf(
  checkpoint: Checkpoint,
  name: string,
  first: number,
  size: number,
): Promise<Float32Array> {
  const tensor = tensorOf(checkpoint, name);
  if (tensor.shape.length !== 1 || tensor.shape[0] < first + size)
    throw wrongShape(checkpoint, tensor, [first + size]);
  return tensor.readRows(first, first + size);
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
