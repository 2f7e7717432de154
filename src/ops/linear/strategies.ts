/**
 * The strategies of the CPU: instances of the DPR model (docs/mapping.md) over the layouts that weights have in memory.
 * All compute the same integers and scale them in the same order, so that the choice never changes a result.
 *
 * @module
 */
import type { LoweringContext } from "../../backends/wasm/backend.ts";
import type { Address, Instruction } from "../../backends/wasm/instruction.ts";
import * as code from "../../backends/wasm/opcodes.ts";
import { GROUP } from "./activations.ts";
import type { PreparedInput } from "./input.ts";
import { type PackedLinear, packings } from "./packed.ts";
import type { StrategyName } from "./policy.ts";

/** Floats of a panel, and what decoding it takes; see floatTile.as.ts and decoded.as.ts. */
const PANEL_BYTES = 16 * 256 * 4;
const DECODED_BYTES = 2048 + 4096;
/** A decoded group of a tile; see nibbleInt8.as.ts. */
const TILE_BYTES = 16 * GROUP;
/** The same of tiles of fields; see fieldProducts.as.ts. */
const FIELD_GROUP_BYTES = 32 * GROUP + 2048;
export const FIELD_TILE_BYTES = 2560;
/** Forms of the product by bit planes; see planeProducts.as.ts. */
const forms = { table: 0, narrowTable: 1, bitwise: 2 } as const;
/** The largest activations whose sums of four fit the byte of a narrow table four times. */
const NARROW_LARGEST = 7;

/** One way to multiply. */
export interface Strategy {
  readonly name: StrategyName;
  /** Reads the input as integers. */
  readonly integers: boolean;
  /** Why it does not multiply these weights; undefined when it does. */
  declines(weight: PackedLinear): string | undefined;
  lower(
    weight: PackedLinear,
    input: PreparedInput,
    out: Address,
    tokens: number,
    context: LoweringContext,
  ): Instruction;
}

/** Codes become bytes in registers, once for two tokens, and go straight into the int8 dot product. */
const padding: Strategy = {
  name: "padding",
  integers: true,
  declines: (weight) =>
    weight.packing === "nibbleTiles" || weight.layout === "direct"
      ? undefined
      : `no byte shuffle decodes ${describe(weight)}`,
  lower: (weight, input, out, tokens, { scratch }) =>
    weight.packing === "nibbleTiles"
      ? product(code.LINEAR_NIBBLE_DIRECT, weight, input, out, tokens, scratch.perThread(128))
      : product(code.LINEAR_FIELDS_DIRECT, weight, input, out, tokens, [
          weight.lowTiles!,
          ...scratch.perThread(tokens * (64 + weight.padded)),
        ]),
};

/** A group of 128 columns is decoded to a first-level cache's worth of bytes, once for all tokens. */
const paddingDecoded: Strategy = {
  name: "padding-decoded",
  integers: true,
  declines: ({ packing }) =>
    packing === "nibbleTiles" || packing === "fieldTiles" ? undefined : `nothing to decode in ${packing}`,
  lower: (weight, input, out, tokens, { scratch }) =>
    weight.packing === "nibbleTiles"
      ? product(
          code.LINEAR_NIBBLE_INT8,
          weight,
          input,
          out,
          tokens,
          scratch.perThread(tokens * 64 + TILE_BYTES),
        )
      : product(code.LINEAR_FIELDS_INT8, weight, input, out, tokens, [
          weight.lowTiles!,
          ...scratch.perThread(tokens * 64 + FIELD_GROUP_BYTES),
        ]),
};

/** Bytes in two nibbles, (4, 4): the dot product takes 7 bits. */
const split: Strategy = {
  name: "split",
  integers: true,
  declines: (weight) =>
    weight.packing === "byteTiles" ? undefined : `${describe(weight)} need no two parts of a byte`,
  lower: (weight, input, out, tokens) => product(code.LINEAR_BYTE_INT8, weight, input, out, tokens, []),
};

/** Planes of weight bits, (1, ..., 1), four at a time look up the sum of their activations. */
const table = planeStrategy("table", (largest) =>
  largest <= NARROW_LARGEST ? forms.narrowTable : forms.table,
);

/** Planes of weight bits and planes of activation bits: and, popcount. */
const bitwise = planeStrategy("bitwise", () => forms.bitwise);

function planeStrategy(name: StrategyName, form: (largest: number) => number): Strategy {
  return {
    name,
    integers: true,
    declines: (weight) =>
      weight.layout === "planes" ? undefined : `${describe(weight)} are not in bit planes`,
    lower(weight, input, out, tokens, { scratch }) {
      const { data, scales, codebook, rows, padded } = weight;
      const { q, scales: inputScales, sums, largest } = input.integers!;
      const activationBits = Math.ceil(Math.log2(largest + 1)) + 1;
      const head = [q, inputScales, sums, data.place, scales!.place, codebook!.place, out, tokens, rows];
      const scratchBytes = 128 + 8 * padded;
      return {
        code: code.LINEAR_PLANES,
        args: [...head, form(largest), padded, activationBits, ...scratch.perThread(scratchBytes)],
      };
    },
  };
}

/** Float activations, or float weights. */
const float: Strategy = {
  name: "float",
  integers: false,
  declines: (weight) =>
    Object.hasOwn(packings, weight.packing) ? undefined : `unknown packing ${weight.packing}`,
  lower(weight, { x }, out, tokens, { scratch }) {
    const { packing, data, scales, codebook, rows, columns, padded, lowTiles } = weight;
    const panel = scratch.perThread(DECODED_BYTES + PANEL_BYTES + tokens * 64);
    if (packing === "float" || packing === "half") {
      const instruction = packing === "float" ? code.LINEAR_F32 : code.LINEAR_F16;
      return { code: instruction, args: [x, data.place, out, tokens, rows, columns, ...panel] };
    }
    const head = [x, data.place, scales!.place, codebook?.place ?? 0, out, tokens, rows, columns];
    return packing === "fieldTiles"
      ? { code: code.LINEAR_FIELDS_FLOAT, args: [...head, lowTiles!, ...panel] }
      : { code: code.LINEAR_TILES_FLOAT, args: [...head, packings[packing], padded, ...panel] };
  },
};

/** Every strategy, the usual one of a layout before the others. */
export const strategies: readonly Strategy[] = [padding, paddingDecoded, split, table, bitwise, float];

function product(
  instruction: number,
  weight: PackedLinear,
  { integers }: PreparedInput,
  out: Address,
  tokens: number,
  rest: Instruction["args"],
): Instruction {
  const { data, scales: rowScales, codebook, rows, columns, padded } = weight;
  const { q, scales, sums } = integers!;
  const places = [data.place, rowScales!.place, codebook?.place ?? 0];
  return {
    code: instruction,
    args: [q, scales, sums, ...places, out, tokens, rows, columns, padded, ...rest],
  };
}

function describe({ scheme, layout, packing }: PackedLinear): string {
  return `${scheme} weights in ${layout ?? packing}`;
}
