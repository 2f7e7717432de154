import { CheckpointError } from "../../errors.ts";
import type { ByteSource, Tensor } from "../checkpoint.ts";
import { CHUNK_BYTES, readFloats } from "../denseTensor.ts";
import { type Dtype, toFloat32 } from "../dtype.ts";
import { elementCount, rowLayout, rowTarget } from "../shape.ts";
import { type OnnxTensor, typeBytes } from "./tensor.ts";
import type { PlainWeight } from "./weights.ts";

/** What reading part of a transposed weight keeps: the stored bytes of one weight, the last. */
export interface LastRead {
  tensor?: OnnxTensor;
  bytes?: Promise<Uint8Array>;
}

/** Rows of a transposed weight gathered at once, so that writes of neighbouring values come together. */
const TILE = 32;

/** A weight of plain elements as a Tensor in [out, in] order, dequantized when read. */
export function plainTensor(name: string, weight: PlainWeight, file: string, last: LastRead): Tensor {
  const { tensor, transposed } = weight;
  const shape = transposed ? [...tensor.shape].reverse() : tensor.shape;
  checkAffine(weight, file);
  return {
    name,
    shape,
    encoding: tensor.type,
    byteLength:
      tensor.byteLength + (weight.affine?.scale.byteLength ?? 0) + (weight.affine?.zero?.byteLength ?? 0),
    async readRows(start, end, target) {
      const { rowSize, out } = rowTarget(name, shape, start, end, target);
      const decode = await decoder(weight);
      if (transposed) await readColumns(tensor, start, end, out, decode, last);
      else await readRowsInto(tensor, start, rowSize, out, decode);
      return out;
    },
  };
}

/** Decodes columns [from, from + out.length) of a stored row; `bytes` begin with element `base` of the tensor. */
type Decode = (bytes: Uint8Array, base: number, row: number, from: number, out: Float32Array) => void;

async function readRowsInto(
  tensor: OnnxTensor,
  start: number,
  rowSize: number,
  out: Float32Array,
  decode: Decode,
) {
  const { source, offset } = await tensor.open();
  const rows = rowSize === 0 ? 0 : out.length / rowSize;
  const step = Math.max(1, Math.floor(CHUNK_BYTES / Math.max(1, rowSize)));
  for (let row = 0; row < rows; row += step) {
    const count = Math.min(step, rows - row);
    const { bytes, base } = await readElements(
      source,
      offset,
      tensor,
      (start + row) * rowSize,
      count * rowSize,
    );
    for (let i = row; i < row + count; i++) {
      decode(bytes, base, start + i, 0, out.subarray(i * rowSize, (i + 1) * rowSize));
    }
  }
}

/** Columns [start, end) of the stored matrix become rows of `out`. */
async function readColumns(
  tensor: OnnxTensor,
  start: number,
  end: number,
  out: Float32Array,
  decode: Decode,
  last: LastRead,
) {
  const { rows, rowSize } = rowLayout(tensor.shape);
  const width = end - start;
  if (width === 0 || rows === 0) return;
  const { source, offset } = await tensor.open();
  const tile = new Float32Array(TILE * width);
  // Part of the rows is part of every stored row: keep what was read for the neighbouring request.
  const whole = width === rowSize ? undefined : await readWhole(source, offset, tensor, last);
  const step = whole === undefined ? Math.max(TILE, Math.floor(CHUNK_BYTES / rowSize / TILE) * TILE) : rows;
  for (let first = 0; first < rows; first += step) {
    const until = Math.min(first + step, rows);
    const { bytes, base } =
      whole === undefined
        ? await readElements(source, offset, tensor, first * rowSize, (until - first) * rowSize)
        : { bytes: whole, base: 0 };
    for (let row = first; row < until; row += TILE) {
      const count = Math.min(TILE, until - row);
      for (let i = 0; i < count; i++)
        decode(bytes, base, row + i, start, tile.subarray(i * width, (i + 1) * width));
      for (let column = 0; column < width; column++) {
        const to = column * rows + row;
        for (let i = 0; i < count; i++) out[to + i] = tile[i * width + column];
      }
    }
  }
}

function readWhole(
  source: ByteSource,
  offset: number,
  tensor: OnnxTensor,
  last: LastRead,
): Promise<Uint8Array> {
  if (last.tensor !== tensor || last.bytes === undefined) {
    last.tensor = tensor;
    last.bytes = source.read(offset, tensor.byteLength);
  }
  return last.bytes;
}

/** Reads whole bytes around a range of elements; `base` is the first element in them. */
async function readElements(
  source: ByteSource,
  offset: number,
  tensor: OnnxTensor,
  first: number,
  count: number,
) {
  const size = typeBytes(tensor.type);
  const from = Math.floor(first * size);
  const bytes = await source.read(offset + from, Math.ceil((first + count) * size) - from);
  return { bytes, base: from / size };
}

async function decoder(weight: PlainWeight): Promise<Decode> {
  const { tensor, affine, shift = 0 } = weight;
  const columns = rowLayout(tensor.shape).rowSize;
  const elements = elementReader(tensor, columns);
  if (affine === undefined) {
    return (bytes, base, row, from, out) => {
      elements(bytes, base, row, from, out);
      if (shift !== 0) for (let i = 0; i < out.length; i++) out[i] += shift;
    };
  }
  const scale = await readSmall(affine.scale);
  const zero = affine.zero === undefined ? new Float32Array(1) : await readSmall(affine.zero);
  const { blockSize } = affine;
  const axis = storedAxis(weight);
  const blocks = blockSize > 0;
  const block = (index: number) => (blocks ? Math.floor(index / blockSize) : index);
  const perRow = blocks ? Math.ceil(columns / (axis === 1 ? blockSize : 1)) : 0;
  return (bytes, base, row, from, out) => {
    elements(bytes, base, row, from, out);
    for (let i = 0; i < out.length; i++) {
      const column = from + i;
      let at = axis === 0 ? row : column;
      if (blocks) at = axis === 0 ? block(row) * perRow + column : row * perRow + block(column);
      const z = zero.length === 1 ? zero[0] : zero[at];
      out[i] = (out[i] - z) * (scale.length === 1 ? scale[0] : scale[at]);
    }
  };
}

function elementReader(tensor: OnnxTensor, columns: number): Decode {
  const type = tensor.type;
  if (type === "INT4" || type === "UINT4") {
    const sign = type === "INT4" ? 8 : 0;
    return (bytes, base, row, from, out) => {
      for (let i = 0, at = row * columns + from - base; i < out.length; i++, at++) {
        const code = (bytes[at >> 1] >> (4 * (at & 1))) & 15;
        out[i] = (code ^ sign) - sign;
      }
    };
  }
  const size = typeBytes(type);
  return (bytes, base, row, from, out) => {
    const at = (row * columns + from - base) * size;
    toFloat32(type as Dtype, bytes.subarray(at, at + out.length * size), out);
  };
}

/** All values of a small tensor: scales, zero points. */
async function readSmall(tensor: OnnxTensor): Promise<Float32Array> {
  const count = elementCount(tensor.shape) ?? 0;
  const out = new Float32Array(count);
  const { source, offset } = await tensor.open();
  if (tensor.type === "INT4" || tensor.type === "UINT4") {
    elementReader(tensor, count)(await source.read(offset, tensor.byteLength), 0, 0, 0, out);
  } else await readFloats(source, offset, tensor.type, out);
  return out;
}

function storedAxis({ tensor, affine }: Pick<PlainWeight, "tensor" | "affine">): number {
  const axis = affine?.axis ?? 0;
  return axis < 0 ? axis + tensor.shape.length : axis;
}

function checkAffine({ tensor, affine }: PlainWeight, file: string): void {
  const isFloat = /^(F64|F32|F16|BF16)$/.test(tensor.type);
  const fail = (problem: string): never => {
    throw new CheckpointError(file, `initializer ${tensor.name.slice(0, 200)} ${problem}`);
  };
  if (affine === undefined) {
    if (!isFloat) fail(`is a ${tensor.type} weight without a scale`);
    return;
  }
  const [rows, columns] = [tensor.shape[0] ?? 1, rowLayout(tensor.shape).rowSize];
  const { blockSize } = affine;
  const along = storedAxis({ tensor, affine });
  if (along !== 0 && along !== 1) fail(`has its scales along axis ${affine.axis}`);
  if (!Number.isSafeInteger(blockSize) || blockSize < 0) fail(`has blocks of ${blockSize}`);
  const parts = along === 0 ? rows : columns;
  const needed = blockSize > 0 ? Math.ceil(parts / blockSize) * (along === 0 ? columns : rows) : parts;
  for (const [what, part] of [
    ["scales", affine.scale],
    ["zero points", affine.zero],
  ] as const) {
    const count = part === undefined ? 1 : elementCount(part.shape);
    if (count !== 1 && count !== needed) fail(`of shape [${tensor.shape}] has ${count} ${what}`);
  }
}
