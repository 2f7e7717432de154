import type { LoweringContext, Lowerings, WasmDevice } from "../../backends/wasm/backend.ts";
import type { Deferred, Instruction } from "../../backends/wasm/instruction.ts";
import * as code from "../../backends/wasm/opcodes.ts";
import type { Rotation } from "../../quantizers/hadamard/rotation.ts";
import { type PackedLinear, type Packing, packings } from "./packed.ts";

type Address = number | Deferred;

/** Activations that share a scale; quantize.as.ts counts on it. */
const GROUP = 128;
/** Rows that the decoding kernels hold as floats at a time. */
const DECODED_ROWS = 12;
/** A decoded group of a tile; see nibbleInt8.as.ts. */
const TILE_BYTES = 16 * GROUP;
/** The same of tiles of fields, beside a token's activations; see fieldProducts.as.ts. */
const FIELD_GROUP_BYTES = 32 * GROUP + 2048;
export const FIELD_TILE_BYTES = 2560;

/** Products with int8 activations. */
const integerCodes: Partial<Readonly<Record<Packing, number>>> = {
  nibbleTiles: code.LINEAR_NIBBLE_INT8,
  byteTiles: code.LINEAR_BYTE_INT8,
  fieldTiles: code.LINEAR_FIELDS_INT8,
};

/** Integer activations: int8 [rows, padded], and per group a scale and the sum. */
interface QuantizedInput {
  readonly q: Address;
  readonly scales: Address;
  readonly sums: Address;
}

/** Rotates and quantizes the input once for all weights that want it so, then multiplies. */
export const lowerLinear: Lowerings["linear"] = (op, context) => {
  const weights = op.weights as readonly PackedLinear[];
  const { rows } = op;
  const integer = (weight: PackedLinear) => op.activations === "int8" && weight.packing in integerCodes;
  const rotation = weights.find((weight) => weight.rotation)?.rotation;
  const before: Instruction[] = [];

  let rotated: Address = op.input.place;
  if (rotation) {
    rotated = context.scratch.shared("rotated", rows * rotation.size * 4);
    before.push(rotate(op.input.place, rotated, rows, rotation, false, context));
  }
  const firstInteger = weights.find(integer);
  const input = firstInteger && quantizedInput(firstInteger, rows, context);
  if (input) {
    const source = firstInteger.rotation ? rotated : op.input.place;
    const { columns, padded } = firstInteger;
    before.push({
      code: code.QUANTIZE,
      args: [source, rows, columns, padded, input.q, input.scales, input.sums],
      tokenRows: rows,
    });
  }
  const products = weights.map((weight, i): Instruction => {
    const out = op.outputs[i].place;
    if (integer(weight)) return integerProduct(weight, input!, out, rows, context);
    return {
      ...floatProduct(weight, weight.rotation ? rotated : op.input.place, out, rows, context),
      independent: true,
    };
  });
  const biases = op.biases.flatMap((bias, i): Instruction[] =>
    bias
      ? [
          {
            code: code.ADD_BIAS,
            args: [op.outputs[i].place, bias.place, rows, weights[i].rows],
            tokenRows: rows,
          },
        ]
      : [],
  );
  // Only the last product of the group has to be waited for.
  const joined = products.map((product, i) => ({ ...product, independent: i < products.length - 1 }));
  return [...before, ...joined, ...biases];
};

/** x [rows, size] rotated to out; both may be the same place. */
export function rotate(
  x: Address,
  out: Address,
  rows: number,
  rotation: Rotation,
  inverse: boolean,
  { device, scratch }: LoweringContext,
): Instruction {
  const { size, blocks, stages, bases } = rotation;
  const block = size / blocks;
  const { signs, list } = uploadRotation(rotation, inverse, device);
  return {
    code: code.ROTATE,
    args: [
      x,
      out,
      rows,
      size,
      signs,
      block,
      2 ** stages,
      list,
      bases.length,
      inverse ? 1 : 0,
      ...scratch.perThread(block * 4),
    ],
    tokenRows: rows,
  };
}

function uploadRotation(
  rotation: Rotation,
  inverse: boolean,
  device: WasmDevice,
): { signs: number; list: number } {
  const { size, seed, scale, signs, bases } = rotation;
  const key = `rotation ${size} ${seed}`;
  const scaled = device.shared(`${key} signs`, () => Float32Array.from(signs, (sign) => sign * scale));
  const innermostFirst = bases.toReversed();
  const list = device.shared(`${key} bases ${inverse}`, () =>
    Uint32Array.from(
      innermostFirst.flatMap(({ order, matrix }) => {
        const entry = inverse
          ? (i: number) => matrix[(i % order) * order + Math.floor(i / order)]
          : (i: number) => matrix[i];
        const floats = () => Float32Array.from(matrix, (_, i) => entry(i));
        return [order, device.shared(`base ${size} ${order} ${inverse}`, floats).place];
      }),
    ),
  );
  return { signs: scaled.place, list: list.place };
}

function quantizedInput(
  { columns, padded }: PackedLinear,
  rows: number,
  { scratch }: LoweringContext,
): QuantizedInput {
  const groups = rows * Math.ceil(columns / GROUP) * 4;
  return {
    q: scratch.shared("activations", rows * padded),
    scales: scratch.shared("activation scales", groups),
    sums: scratch.shared("activation sums", groups),
  };
}

function integerProduct(
  weight: PackedLinear,
  { q, scales, sums }: QuantizedInput,
  out: number,
  tokens: number,
  { scratch }: LoweringContext,
): Instruction {
  const { packing, data, scales: rowScales, codebook, rows, columns, padded, lowTiles } = weight;
  const fields = packing === "fieldTiles";
  return {
    code: integerCodes[packing]!,
    args: [
      q,
      scales,
      sums,
      data.place,
      rowScales!.place,
      codebook?.place ?? 0,
      out,
      tokens,
      rows,
      columns,
      padded,
      ...(fields ? [lowTiles!] : []),
      ...scratch.perThread(tokens * 64 + (fields ? FIELD_GROUP_BYTES + padded : TILE_BYTES)),
    ],
  };
}

function floatProduct(
  weight: PackedLinear,
  x: Address,
  out: number,
  tokens: number,
  { scratch }: LoweringContext,
): Instruction {
  const { packing, data, scales, codebook, rows, columns, padded, lowTiles } = weight;
  const decoded = () => scratch.perThread(DECODED_ROWS * columns * 4);
  if (packing === "float")
    return { code: code.LINEAR_F32, args: [x, data.place, out, tokens, rows, columns] };
  if (packing === "half") {
    return { code: code.LINEAR_F16, args: [x, data.place, out, tokens, rows, columns, ...decoded()] };
  }
  const head = [x, data.place, scales!.place, codebook?.place ?? 0, out, tokens, rows, columns];
  return packing === "fieldTiles"
    ? {
        code: code.LINEAR_FIELDS_FLOAT,
        args: [...head, lowTiles!, ...scratch.perThread(FIELD_TILE_BYTES + 16 * columns * 4)],
      }
    : { code: code.LINEAR_TILES_FLOAT, args: [...head, packings[packing], padded, ...decoded()] };
}
