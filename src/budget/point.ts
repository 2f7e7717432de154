/** Less of both is better. */
export interface Point {
  readonly cost: number;
  readonly loss: number;
}

/** The points that no other one beats or equals in cost and loss, by ascending cost. */
export function undominated<T extends Point>(points: readonly T[]): T[] {
  const kept: T[] = [];
  for (const point of [...points].sort((a, b) => a.cost - b.cost || a.loss - b.loss)) {
    if (kept.length === 0 || point.loss < kept[kept.length - 1].loss) kept.push(point);
  }
  return kept;
}
