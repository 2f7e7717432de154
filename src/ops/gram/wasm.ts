import type { Lowerings } from "../../backends/wasm/backend.ts";
import { GRAM, GRAM_PACK } from "../../backends/wasm/opcodes.ts";

/** Columns of a panel, as wasm.as.ts has them. */
const PANEL = 8;

export const lowerGram: Lowerings["gram"] = ({ input, weights, sums, rows, size }, { scratch }) => {
  const panels = scratch.shared("gram panels", Math.ceil(size / PANEL) * PANEL * rows * 4);
  return [
    { code: GRAM_PACK, args: [input.place, panels, rows, size, weights?.place ?? 0] },
    { code: GRAM, args: [panels, sums.place, rows, size] },
  ];
};
