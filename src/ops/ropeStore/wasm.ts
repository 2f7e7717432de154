import type { Lowerings } from "../../backends/wasm/backend.ts";
import { ROPE_STORE } from "../../backends/wasm/opcodes.ts";
import { keyValueTypes } from "../attention/keyValue.ts";

export const lowerRopeStore: Lowerings["ropeStore"] = (op) => [
  {
    code: ROPE_STORE,
    args: [
      op.q.place,
      op.k.place,
      op.v.place,
      op.rope?.place ?? 0,
      op.rotated / 2,
      op.cache.keys.place,
      op.cache.values.place,
      op.cache.capacity,
      op.positions.place,
      op.sequences.place,
      op.rows,
      op.heads,
      op.kvHeads,
      op.headSize,
      keyValueTypes.indexOf(op.cache.type),
    ],
    tokenRows: op.rows,
  },
];
