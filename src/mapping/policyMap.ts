/**
 * The policy map: measured times of every strategy for a model's shapes, and the table that the dispatcher looks them
 * up in (ADAngel, section 4.4).
 *
 * @module
 */
import type { ActivationPrecision } from "../backends/operation.ts";
import {
  LARGEST_M,
  type LinearPolicy,
  type ProductShape,
  type StrategyName,
  strategyNames,
} from "../ops/linear/policy.ts";
import type { PolicyMap, PolicyOrigin, PolicyPoint, PolicyShape } from "./policyFile.ts";

/** Why a map does not hold here; undefined when it does. */
export function foreignness(map: PolicyMap, here: PolicyOrigin): string | undefined {
  if (map.machine !== here.machine) return `it was measured on another machine (${map.machine})`;
  if (map.engine !== here.engine) return "it was measured with another build of the engine";
  if (map.threads !== here.threads) return `it was measured with ${map.threads} threads, not ${here.threads}`;
  return undefined;
}

/** The shapes of both maps, those of `newer` where they overlap. */
export function mergeMaps(older: PolicyMap | undefined, newer: PolicyMap): PolicyMap {
  const keys = new Set(newer.shapes.map(keyOfShape));
  const kept = older?.shapes.filter((shape) => !keys.has(keyOfShape(shape))) ?? [];
  const tuned = new Set(newer.compensation?.map(({ layers }) => layers));
  const others = older?.compensation?.filter(({ layers }) => !tuned.has(layers)) ?? [];
  const compensation = [...others, ...(newer.compensation ?? [])];
  return { ...newer, shapes: [...kept, ...newer.shapes], ...(compensation.length > 0 && { compensation }) };
}

/** The map as a table: for every shape the choice at each M up to {@link LARGEST_M}. */
export function policyOf({ shapes }: Pick<PolicyMap, "shapes">): LinearPolicy {
  const rows = new Map(shapes.map((shape) => [keyOfShape(shape), choicesOf(shape.points)]));
  return ({ n, k, scheme, activations, m }: ProductShape) => {
    const row = rows.get(`${n} ${k} ${scheme} ${bitsOf(activations)}`);
    return row && strategyNames[row[Math.min(m, LARGEST_M)]];
  };
}

/** Whether any of the shapes is in the map. */
export function covers(map: PolicyMap, shapes: readonly Pick<PolicyShape, "n" | "k" | "scheme">[]): boolean {
  const known = new Set(map.shapes.map(({ n, k, scheme }) => `${n} ${k} ${scheme}`));
  return shapes.some(({ n, k, scheme }) => known.has(`${n} ${k} ${scheme}`));
}

/** The strategy's index for every M from 0; between two points the one that straight lines make faster. */
function choicesOf(points: readonly PolicyPoint[]): Uint8Array {
  const sorted = points.toSorted((a, b) => a.m - b.m);
  const choices = new Uint8Array(LARGEST_M + 1);
  let next = 0;
  for (let m = 0; m <= LARGEST_M; m++) {
    while (next < sorted.length && sorted[next].m < m) next++;
    const above = sorted[Math.min(next, sorted.length - 1)];
    const below = sorted[Math.max(0, next - 1)];
    const choice = above.m <= m || below.m >= m ? above.choice : between(below, above, m);
    choices[m] = strategyNames.indexOf(choice);
  }
  return choices;
}

function between(below: PolicyPoint, above: PolicyPoint, m: number): StrategyName {
  if (below.choice === above.choice) return below.choice;
  const part = (m - below.m) / (above.m - below.m);
  const seconds = (name: StrategyName) => {
    const [from, to] = [below.seconds[name], above.seconds[name]];
    return from === undefined || to === undefined ? Number.POSITIVE_INFINITY : from + part * (to - from);
  };
  return seconds(below.choice) <= seconds(above.choice) ? below.choice : above.choice;
}

function keyOfShape({ n, k, scheme, activationBits }: PolicyShape): string {
  return `${n} ${k} ${scheme} ${activationBits}`;
}

function bitsOf(activations: ActivationPrecision): number {
  return { float: 32, int16: 16, int8: 8, int4: 4 }[activations];
}
