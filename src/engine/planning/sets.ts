import type { Choice } from "../../budget/plan.ts";
import { groupBy } from "../../groupBy.ts";
import { isSliceable } from "../quantize/plan.ts";
import type { PlannableLayer } from "./layers.ts";

/** Every set of a model's layers that can be one matrix, single layers first: {q}, {k}, {q,k}, {q,k,v}, ... */
export function fusibleSets(layers: readonly PlannableLayer[]): PlannableLayer[][] {
  const groups = groupBy(layers, ({ name, group }) => group ?? name);
  return [...groups.values()].flatMap((group) => {
    const fusible = group.filter(({ rows }) => isSliceable(rows));
    const subsets = Array.from({ length: 2 ** fusible.length }, (_, mask) =>
      fusible.filter((_, i) => mask & (1 << i)),
    );
    return [...group.map((layer) => [layer]), ...subsets.filter(({ length }) => length > 1)];
  });
}

/** Layers of one input and one option as one matrix, wherever that is possible. */
export function fuseEqual(
  layers: readonly PlannableLayer[],
  optionOf: ReadonlyMap<string, string>,
): Choice[] {
  const sets = groupBy(layers, ({ name, rows, group }) =>
    group !== undefined && isSliceable(rows) ? `${group} ${optionOf.get(name)}` : name,
  );
  return Array.from(sets.values(), (set) => ({
    layers: set.map(({ name }) => name),
    option: optionOf.get(set[0].name)!,
  }));
}
