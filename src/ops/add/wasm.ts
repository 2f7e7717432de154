import type { Lowerings } from "../../backends/wasm/backend.ts";
import { ADD } from "../../backends/wasm/opcodes.ts";

export const lowerAdd: Lowerings["add"] = ({ input, add, rows, size }) => [
  { code: ADD, args: [input.place, add.place, rows * size] },
];
