import type { Lowerings } from "../../backends/wasm/backend.ts";
import { float } from "../../backends/wasm/instruction.ts";
import { SOFTCAP } from "../../backends/wasm/opcodes.ts";

export const lowerSoftcap: Lowerings["softcap"] = ({ input, rows, size, limit }) => [
  { code: SOFTCAP, args: [input.place, rows * size, float(limit)] },
];
