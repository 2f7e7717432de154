/**
 * What one block of layers can do: for each price of cost, its best choice. The lower convex hull over all partitions
 * and options, found without listing their products: the hull of a sum of sets is the sum of their hulls.
 *
 * @module
 */
import { type Point, undominated } from "./point.ts";
import type { Block, Item, Program } from "./program.ts";

/** A choice for one block: the items that cover its layers, and their sums. */
export interface Configuration extends Point {
  readonly items: readonly Item[];
}

/** Configurations on the block's lower convex hull, cost ascending, loss descending, ever less steeply. */
export function frontier({ items }: Program, { partitions }: Block): Configuration[] {
  const points = partitions.flatMap((sets) => sumOfHulls(sets.map((set) => lowerHull(items[set]))));
  return lowerHull(points);
}

/** Loss saved per cost added between two neighbours of a hull. */
export function slope(a: Point, b: Point): number {
  return (a.loss - b.loss) / (b.cost - a.cost);
}

export function configuration(items: readonly Item[]): Configuration {
  let [cost, loss] = [0, 0];
  for (const each of items) {
    cost += each.cost;
    loss += each.loss;
  }
  return { items, cost, loss };
}

function lowerHull<T extends Point>(points: readonly T[]): T[] {
  const hull: T[] = [];
  for (const point of undominated(points)) {
    while (
      hull.length > 1 &&
      slope(hull[hull.length - 2], hull[hull.length - 1]) <= slope(hull[hull.length - 1], point)
    ) {
      hull.pop();
    }
    hull.push(point);
  }
  return hull;
}

function sumOfHulls(hulls: readonly (readonly Item[])[]): Configuration[] {
  if (hulls.length === 1) return hulls[0].map((each) => configuration([each]));
  const steps = hulls.flatMap((hull, part) =>
    hull.slice(1).map((to, i) => ({ part, to, slope: slope(hull[i], to) })),
  );
  // Stable, and slopes within a hull descend: each hull's steps stay in order.
  steps.sort((a, b) => b.slope - a.slope);
  const current = hulls.map((hull) => hull[0]);
  const points = [configuration([...current])];
  for (const { part, to } of steps) {
    current[part] = to;
    points.push(configuration([...current]));
  }
  return points;
}
