import type { Lowerings } from "../../backends/wasm/backend.ts";
import { float } from "../../backends/wasm/instruction.ts";
import { ATTENTION } from "../../backends/wasm/opcodes.ts";
import { keyValueTypes } from "./keyValue.ts";

/** See wasm.as.ts: queries of a tile, positions of a block. */
const [QUERIES, BLOCK] = [48, 64];
const FIXED_BYTES = 2 * QUERIES * BLOCK * 4 + 2 * BLOCK * 4 + QUERIES * 16 + 16;

export const lowerAttention: Lowerings["attention"] = (op, { scratch }) => [
  {
    code: ATTENTION,
    args: [
      op.q.place,
      op.cache.keys.place,
      op.cache.values.place,
      op.cache.capacity,
      op.positions.place,
      op.sequences.place,
      op.out.place,
      op.rows,
      op.heads,
      op.kvHeads,
      op.headSize,
      float(op.scale),
      op.window,
      float(op.softcap),
      keyValueTypes.indexOf(op.cache.type),
      ...scratch.perThread(FIXED_BYTES + 2 * (QUERIES + BLOCK) * op.headSize * 4),
    ],
  },
];
