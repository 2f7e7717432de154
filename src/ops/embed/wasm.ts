import type { Lowerings } from "../../backends/wasm/backend.ts";
import { float, type Instruction } from "../../backends/wasm/instruction.ts";
import { EMBED } from "../../backends/wasm/opcodes.ts";
import { type PackedLinear, packings } from "../linear/packed.ts";
import { rotate } from "../linear/rotate.ts";
import { FIELD_TILE_BYTES } from "../linear/strategies.ts";

export const lowerEmbed: Lowerings["embed"] = ({ table, ids, out, rows, scale }, context) => {
  const weight = table as PackedLinear;
  const { data, packing, columns, padded, scales, codebook, lowTiles, rotation } = weight;
  const places = [scales?.place ?? 0, codebook?.place ?? 0];
  const lookUp: Instruction = {
    code: EMBED,
    args: [
      data.place,
      packings[packing],
      ids.place,
      out.place,
      rows,
      columns,
      float(scale),
      ...places,
      padded,
      lowTiles ?? 0,
      ...context.scratch.perThread(FIELD_TILE_BYTES),
    ],
    tokenRows: rows,
  };
  return rotation ? [lookUp, rotate(out.place, out.place, rows, rotation, true, context)] : [lookUp];
};
