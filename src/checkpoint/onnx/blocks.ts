import { CheckpointError, UnsupportedError } from "../../errors.ts";
import type { Tensor } from "../checkpoint.ts";
import { CHUNK_BYTES, readFloats } from "../denseTensor.ts";
import { elementCount, rowTarget } from "../shape.ts";
import type { OnnxTensor } from "./tensor.ts";
import type { BlockWeight } from "./weights.ts";

/**
 * Block-quantized rows: value = (code - zero) * scale, codes packed from the low bits up.
 * Source: ONNX Runtime's contrib operators MatMulNBits and GatherBlockQuantized.
 */
export function blockTensor(name: string, weight: BlockWeight, file: string): Tensor {
  const { tensor, scales, zeros, rows, columns, bits, blockSize } = weight;
  const shape = [rows, columns];
  checkBlocks(weight, file);
  const perByte = 8 / bits;
  const blocks = Math.ceil(columns / blockSize);
  // MatMulNBits fills the last block of a row; a looked-up row ends with its columns.
  const rowCodes = tensor.shape.length === 3 ? blocks * blockSize : columns;
  const isSigned = tensor.type === "INT4";
  const sign = isSigned ? 8 : 0;
  const defaultZero = tensor.type === "U8" ? 2 ** (bits - 1) : 0;
  return {
    name,
    shape,
    encoding: `${tensor.type === "U8" ? "U" : ""}${isSigned ? "INT4" : `INT${bits}`}_BLOCK${blockSize}`,
    byteLength: tensor.byteLength + scales.byteLength + (zeros?.byteLength ?? 0),
    async readRows(start, end, target) {
      const { out } = rowTarget(name, shape, start, end, target);
      const step = Math.max(1, Math.floor(CHUNK_BYTES / Math.max(1, columns)));
      const codes = await tensor.open();
      for (let first = start; first < end; first += step) {
        const count = Math.min(step, end - first);
        const scale = await readRowValues(scales, first, count, blocks);
        const zero =
          zeros === undefined ? undefined : await readZeros(zeros, first, count, blocks, bits, isSigned);
        const from = Math.floor((first * rowCodes) / perByte);
        const until = Math.ceil(((first + count) * rowCodes) / perByte);
        const bytes = await codes.source.read(codes.offset + from, until - from);
        const mask = 2 ** bits - 1;
        for (let row = 0; row < count; row++) {
          let at = (first + row) * rowCodes - from * perByte;
          let to = (first + row - start) * columns;
          for (let block = 0; block < blocks; block++) {
            const s = scale[row * blocks + block];
            const z = zero === undefined ? defaultZero : zero[row * blocks + block];
            const size = Math.min(blockSize, columns - block * blockSize);
            for (let i = 0; i < size; i++, at++, to++) {
              const code = (bytes[Math.floor(at / perByte)] >> ((at % perByte) * bits)) & mask;
              out[to] = ((code ^ sign) - sign - z) * s;
            }
          }
        }
      }
      return out;
    },
  };
}

async function readRowValues(
  tensor: OnnxTensor,
  first: number,
  count: number,
  perRow: number,
): Promise<Float32Array> {
  const out = new Float32Array(count * perRow);
  const { source, offset } = await tensor.open();
  const bytes = tensor.byteLength / (elementCount(tensor.shape) || 1);
  // checkBlocks has refused 4-bit scales.
  await readFloats(source, offset + first * perRow * bytes, tensor.type as "F32", out);
  return out;
}

/** Zero points are stored as floats, one to a block, or packed like the codes, each row from a new byte. */
async function readZeros(
  tensor: OnnxTensor,
  first: number,
  count: number,
  perRow: number,
  bits: number,
  isSigned: boolean,
): Promise<Float32Array> {
  if (isFloat(tensor)) return readRowValues(tensor, first, count, perRow);
  const perByte = 8 / bits;
  const stride = tensor.type === "U8" ? Math.ceil(perRow / perByte) * perByte : perRow;
  const from = Math.floor((first * stride) / perByte);
  const until = Math.ceil(((first + count) * stride) / perByte);
  const { source, offset } = await tensor.open();
  const bytes = await source.read(offset + from, until - from);
  const out = new Float32Array(count * perRow);
  const sign = isSigned ? 8 : 0;
  for (let row = 0; row < count; row++) {
    for (let block = 0; block < perRow; block++) {
      const at = (first + row) * stride + block - from * perByte;
      const code = (bytes[Math.floor(at / perByte)] >> ((at % perByte) * bits)) & (2 ** bits - 1);
      out[row * perRow + block] = (code ^ sign) - sign;
    }
  }
  return out;
}

function isFloat(tensor: OnnxTensor): boolean {
  return /^(F32|F16|BF16)$/.test(tensor.type);
}

function checkBlocks(
  { tensor, scales, zeros, rows, columns, bits, blockSize }: BlockWeight,
  file: string,
): void {
  const place = `initializer ${tensor.name.slice(0, 200)}`;
  if (![2, 4, 8].includes(bits))
    throw new UnsupportedError(`${file}: ${place} has ${bits}-bit codes; 2, 4 and 8 are read`);
  const fail = (problem: string): never => {
    throw new CheckpointError(file, `${place} ${problem}`);
  };
  const isCount = (n: number) => Number.isSafeInteger(n) && n > 0 && n < 2 ** 31;
  if (!isCount(rows) || !isCount(columns) || !isCount(blockSize) || blockSize < 16) {
    fail(`claims ${rows} rows of ${columns} in blocks of ${blockSize}`);
  }
  if (tensor.type !== "U8" && tensor.type !== "INT4" && tensor.type !== "UINT4")
    fail(`has ${tensor.type} codes`);
  const blocks = Math.ceil(columns / blockSize);
  const rowCodes = tensor.shape.length === 3 ? blocks * blockSize : columns;
  const expected = Math.ceil((rows * rowCodes * bits) / 8);
  if (tensor.byteLength !== expected) fail(`takes ${tensor.byteLength} bytes, ${expected} are needed`);
  if (!isFloat(scales) || elementCount(scales.shape) !== rows * blocks) {
    fail(`has scales ${scales.type} [${scales.shape}] for ${rows} x ${blocks} blocks`);
  }
  if (zeros === undefined) return;
  const packed = zeros.type === "U8" ? rows * Math.ceil((blocks * bits) / 8) : rows * blocks;
  if (elementCount(zeros.shape) !== (isFloat(zeros) ? rows * blocks : packed)) {
    fail(`has zero points ${zeros.type} [${zeros.shape}] for ${rows} x ${blocks} blocks`);
  }
}
