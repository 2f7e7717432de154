import type { Lowerings } from "../../backends/wasm/backend.ts";
import { float } from "../../backends/wasm/instruction.ts";
import { RMS_NORM } from "../../backends/wasm/opcodes.ts";

export const lowerRmsNorm: Lowerings["rmsNorm"] = ({ input, add, weight, out, rows, size, epsilon }) => [
  {
    code: RMS_NORM,
    args: [input.place, add?.place ?? 0, weight.place, out.place, rows, size, float(epsilon)],
    tokenRows: rows,
  },
];
