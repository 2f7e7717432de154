import type { Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { LayerPass, LoadedLayer } from "./layerPass.ts";

/** Shows every distinct input of a layer's linear weights, [tokens, columns], and replaces the hidden states. */
export async function layerInputs(
  pass: LayerPass,
  layer: LoadedLayer,
  hidden: Float32Array,
  see: (weights: readonly string[], inputs: Float32Array) => void,
  signal?: AbortSignal,
): Promise<void> {
  const { backend, stepRows } = pass;
  const copies: { weights: string[]; size: number; out: Slot }[] = [];
  const splice = (operations: Operation[]) => {
    let linears = 0;
    return operations.flatMap((operation): Operation[] => {
      if (operation.op !== "linear") return [operation];
      const { input, rows, weights } = operation;
      const size = weights[0].columns;
      const { out } = (copies[linears++] ??= {
        weights: [...new Set(weights.map((handle) => layer.names.get(handle)!))],
        size,
        out: backend.reserve(stepRows * size * 4),
      });
      return [{ op: "suppress", input, out, rows, size, channels: 0 }, operation];
    });
  };
  const show = async (rows: number) => {
    for (const { weights, size, out } of copies) see(weights, await backend.readFloats(out, rows * size));
  };
  try {
    await pass.run(layer, hidden, { change: splice, after: show, keep: true, signal });
  } finally {
    for (const { out } of copies) backend.free(out);
  }
}
