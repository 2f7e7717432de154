import type { Lowerings } from "../../backends/wasm/backend.ts";
import { SUPPRESS } from "../../backends/wasm/opcodes.ts";

export const lowerSuppress: Lowerings["suppress"] = ({ input, out, rows, size, channels }, { scratch }) => [
  {
    code: SUPPRESS,
    args: [
      ...[input.place, out.place, rows, size, channels],
      ...scratch.perThread((Math.ceil(size / 4) * 4 + channels) * 4),
    ],
  },
];
