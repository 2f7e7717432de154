import type { LinearHandle } from "../backends/operation.ts";
import type { LoadedWeights } from "./weights.ts";

/** The distinct weight matrices, by size and scheme, that a loaded model multiplies with. */
export function productShapes({
  linears,
  fused,
  head,
}: LoadedWeights): { n: number; k: number; scheme: string }[] {
  const parts = new Set([...fused.values()].flatMap((each) => each.parts));
  const alone = [...linears].flatMap(([spec, { handle }]) => (parts.has(spec) ? [] : [handle]));
  const handles: LinearHandle[] = [...alone, ...[...fused.values()].map(({ handle }) => handle), head];
  const shapes = handles.map(({ rows: n, columns: k, scheme }) => ({ n, k, scheme }));
  return [...new Map(shapes.map((shape) => [Object.values(shape).join(" "), shape])).values()];
}
