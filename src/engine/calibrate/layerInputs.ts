import { InputCopies } from "./inputCopies.ts";
import type { LayerPass, LoadedLayer } from "./layerPass.ts";

/** Shows every distinct input of a layer's linear weights, [tokens, columns], and replaces the hidden states. */
export async function layerInputs(
  pass: LayerPass,
  layer: LoadedLayer,
  hidden: Float32Array,
  see: (weights: readonly string[], inputs: Float32Array) => void,
  signal?: AbortSignal,
): Promise<void> {
  const copies = new InputCopies(pass.backend, pass.stepRows);
  try {
    await pass.run(layer, hidden, {
      change: (operations) => copies.change(operations),
      after: (rows) =>
        copies.show(rows, ({ weights, values }) =>
          see([...new Set(weights.map((handle) => layer.names.get(handle)!))], values),
        ),
      keep: true,
      signal,
    });
  } finally {
    copies.free();
  }
}
