import type { LoweringContext, Lowerings, WasmDevice } from "../../backends/wasm/backend.ts";
import type { Deferred, Instruction } from "../../backends/wasm/instruction.ts";
import * as code from "../../backends/wasm/opcodes.ts";
import type { Rotation } from "../../quantizers/hadamard/rotation.ts";
import { GROUP, largestInteger } from "./activations.ts";
import { type PackedLinear, type Packing, packings } from "./packed.ts";

type Address = number | Deferred;

/** Rows that the decoding kernels hold as floats at a time. */
const DECODED_ROWS = 12;
/** A decoded group of a tile; see nibbleInt8.as.ts. */
const TILE_BYTES = 16 * GROUP;
/** The same of tiles of fields, beside a token's activations; see fieldProducts.as.ts. */
const FIELD_GROUP_BYTES = 32 * GROUP + 2048;
export const FIELD_TILE_BYTES = 2560;

/** Products with integer activations. */
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

/** The input as the weights of one rotation want it. */
interface PreparedInput {
  readonly x: Address;
  /** Where some of the weights are multiplied as integers. */
  readonly integers?: QuantizedInput;
  readonly steps: readonly Instruction[];
}

/** Rotates and quantizes the input once for all weights that want it so, then multiplies. */
export const lowerLinear: Lowerings["linear"] = (op, context) => {
  const weights = op.weights as readonly PackedLinear[];
  const { rows, activations } = op;
  const largest = activations === "float" ? undefined : largestInteger[activations];
  const integer = (weight: PackedLinear) => largest !== undefined && weight.packing in integerCodes;
  const inputs = new Map<string, PreparedInput>();
  for (const { rotation } of weights) {
    const key = rotationKey(rotation);
    if (inputs.has(key)) continue;
    const reader = weights.find((weight) => rotationKey(weight.rotation) === key && integer(weight));
    const integers = reader && { ...reader, largest: largest! };
    inputs.set(key, prepareInput(op.input.place, rows, rotation, integers, inputs.size, context));
  }
  const products = weights.map((weight, i): Instruction => {
    const { x, integers } = inputs.get(rotationKey(weight.rotation))!;
    const out = op.outputs[i].place;
    const product = integer(weight)
      ? integerProduct(weight, integers!, out, rows, context)
      : floatProduct(weight, x, out, rows, context);
    // Only the last product of the group has to be waited for.
    return { ...product, independent: i < weights.length - 1 };
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
  return [...[...inputs.values()].flatMap(({ steps }) => steps), ...products, ...biases];
};

/** Rotations of one size and seed are the same. */
function rotationKey(rotation: Rotation | undefined): string {
  return rotation ? `rotation ${rotation.size} ${rotation.seed}` : "";
}

/**
 * Every prepared input has scratch memory of its own, by its `index`, so that all are prepared before the first
 * product and the products wait for nothing between them.
 *
 * @param integers the shape and the largest magnitude of the integers, where weights read the input so
 */
function prepareInput(
  input: Address,
  rows: number,
  rotation: Rotation | undefined,
  integers: { readonly columns: number; readonly padded: number; readonly largest: number } | undefined,
  index: number,
  context: LoweringContext,
): PreparedInput {
  const { scratch } = context;
  const steps: Instruction[] = [];
  let x = input;
  if (rotation) {
    x = scratch.shared(`rotated ${index}`, rows * rotation.size * 4);
    steps.push(rotate(input, x, rows, rotation, false, context));
  }
  if (!integers) return { x, steps };
  const { columns, padded, largest } = integers;
  const groups = rows * Math.ceil(columns / GROUP) * 4;
  const quantized = {
    q: scratch.shared(`activations ${index}`, rows * padded),
    scales: scratch.shared(`activation scales ${index}`, groups),
    sums: scratch.shared(`activation sums ${index}`, groups),
  };
  const { q, scales, sums } = quantized;
  const args = [x, rows, columns, padded, q, scales, sums, largest];
  steps.push({ code: code.QUANTIZE, args, tokenRows: rows });
  return { x, integers: quantized, steps };
}

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
  const { size, scale, signs, bases } = rotation;
  const key = rotationKey(rotation);
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
