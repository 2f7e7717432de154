import type { Lowerings } from "../../backends/wasm/backend.ts";
import { float } from "../../backends/wasm/instruction.ts";
import { ATTENTION } from "../../backends/wasm/opcodes.ts";

/** Scores of one block of positions for two heads, see wasm.as.ts. */
const SCORE_BYTES = 2 * 128 * 4;

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
      scratch.shared("scores", SCORE_BYTES * scratch.threads),
    ],
  },
];
