import type { Lowerings } from "../../backends/wasm/backend.ts";
import { GATE } from "../../backends/wasm/opcodes.ts";

export const lowerGate: Lowerings["gate"] = ({ gate, up, out, rows, size, activation }) => [
  { code: GATE, args: [gate.place, up.place, out.place, rows * size, activation === "silu" ? 0 : 1] },
];
