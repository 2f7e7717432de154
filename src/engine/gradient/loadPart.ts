import type { Backend } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec, LinearSpec, NormSpec } from "../../models/decoder.ts";
import type { Part } from "../parts.ts";
import { type LoadedWeights, linearWeights, loadLayers } from "../weights.ts";
import { loadValues, transpose } from "./product.ts";

/** The float weights of one part in a backend, each beside its transpose where the pass goes back too. */
export interface LoadedPart {
  readonly weights: LoadedWeights;
  readonly transposed: ReadonlyMap<LinearHandle, LinearHandle>;
  readonly linearOf: ReadonlyMap<LinearHandle, LinearSpec>;
  readonly normOf: ReadonlyMap<Slot, NormSpec>;
  free(): void;
}

export interface LoadOptions {
  /** Load the transposes. */
  readonly back: boolean;
  /** Called with the values [rows, columns] of every linear weight. */
  readonly onWeight?: (linear: LinearSpec, values: Float32Array) => void;
}

export async function loadPart(
  spec: DecoderSpec,
  part: Part,
  checkpoint: Checkpoint,
  backend: Backend,
  { back, onWeight }: LoadOptions,
): Promise<LoadedPart> {
  const transposed = new Map<LinearHandle, LinearHandle>();
  const linearOf = new Map<LinearHandle, LinearSpec>();
  const load = async (linear: LinearSpec): Promise<LinearHandle> => {
    const { rows, columns } = linear;
    const source = await linearWeights(linear, checkpoint, undefined, "f32");
    if (!("readRows" in source)) throw new TypeError(`${linear.weight} is not float`);
    const values = await source.readRows(0, rows);
    const handle = await loadValues(backend, values, rows, columns);
    linearOf.set(handle, linear);
    if (back) {
      onWeight?.(linear, values);
      // Nothing is multiplied with the embedding before the first layer.
      if (part !== "embedding")
        transposed.set(handle, await loadValues(backend, transpose(values, rows, columns), columns, rows));
    }
    return handle;
  };
  const layers = typeof part === "number" ? [spec.layers[part]] : [];
  const { linears, norms } = await loadLayers({ ...spec, layers }, checkpoint, backend, load);
  const end = typeof part === "number" ? undefined : await load(part === "head" ? spec.head : spec.embedding);
  const any = end ?? linears.values().next().value!.handle;
  return {
    weights: { embedding: any, head: any, linears, fused: new Map(), norms, byteLength: 0 },
    transposed,
    linearOf,
    normOf: new Map(Array.from(norms, ([norm, slot]) => [slot, norm])),
    free() {
      for (const handle of [...linearOf.keys(), ...transposed.values()]) backend.freeLinear(handle);
      for (const { bias } of linears.values()) if (bias) backend.free(bias);
      for (const norm of norms.values()) backend.free(norm);
    },
  };
}
