/**
 * Which layers may be fused with which: the sets {q,k,v}, {q,k}, ..., {gate,up} of program (4), and the ways to cover
 * layers with them, each exactly once.
 *
 * @module
 */
import { UsageError } from "../errors.ts";

/** The ways to partition n layers grow like Bell's numbers: 203 for 6, 4140 for 8. */
const MAX_FUSIBLE = 6;

/** Layers that fusible sets connect. */
export interface Fusible {
  /** Layer indices, ascending. */
  readonly layers: readonly number[];
  /** Partitions of the layers, each a list of indices into the sets; empty when the sets cannot cover the layers. */
  readonly partitions: readonly (readonly number[])[];
}

/** Equal for sets of the same layers in any order. */
export function setKey(layers: readonly number[]): string {
  return [...layers].sort((a, b) => a - b).join(",");
}

/**
 * Splits layers into independent parts and lists every exact cover of each part.
 * @param count layers there are
 * @param sets sets of layer indices that may be taken
 * @param nameOf a layer's name, for messages
 */
export function fusibles(
  count: number,
  sets: readonly (readonly number[])[],
  nameOf: (layer: number) => string,
): Fusible[] {
  const setsOf: number[][] = Array.from({ length: count }, () => []);
  sets.forEach((layers, set) => {
    for (const layer of layers) setsOf[layer].push(set);
  });
  return components(count, sets).map((layers) => {
    if (layers.length > MAX_FUSIBLE) {
      throw new UsageError(
        `costs: fused sets connect ${layers.length} layers (${layers.slice(0, 3).map(nameOf).join(", ")}, ...), more than ${MAX_FUSIBLE}; leave some sets out`,
      );
    }
    return { layers, partitions: [...covers(layers, sets, setsOf)] };
  });
}

function components(count: number, sets: readonly (readonly number[])[]): number[][] {
  const parent = Array.from({ length: count }, (_, layer) => layer);
  const root = (layer: number): number => {
    while (parent[layer] !== layer) layer = parent[layer] = parent[parent[layer]];
    return layer;
  };
  for (const layers of sets) for (const layer of layers) parent[root(layer)] = root(layers[0]);
  const members = new Map<number, number[]>();
  for (let layer = 0; layer < count; layer++) {
    const list = members.get(root(layer));
    if (list) list.push(layer);
    else members.set(root(layer), [layer]);
  }
  return [...members.values()];
}

function* covers(
  open: readonly number[],
  sets: readonly (readonly number[])[],
  setsOf: readonly (readonly number[])[],
): Generator<number[]> {
  if (open.length === 0) return yield [];
  for (const set of setsOf[open[0]]) {
    if (!sets[set].every((layer) => open.includes(layer))) continue;
    const rest = open.filter((layer) => !sets[set].includes(layer));
    for (const others of covers(rest, sets, setsOf)) yield [set, ...others];
  }
}
