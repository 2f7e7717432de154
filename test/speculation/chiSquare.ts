/** Expected counts below this are joined into one cell. */
const SMALLEST = 5;

/**
 * Whether counts differ from probabilities more than chance explains: Pearson's statistic over its 0.999 quantile
 * (Wilson and Hilferty's approximation). Outcomes that cannot happen differ at once.
 */
export function differs(
  counts: ReadonlyMap<string, number>,
  probabilities: ReadonlyMap<string, number>,
): boolean {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  if ([...counts.keys()].some((outcome) => !probabilities.has(outcome))) return true;
  let [statistic, cells] = [0, 0];
  const rest = { expected: 0, observed: 0 };
  for (const [outcome, probability] of probabilities) {
    const [expected, observed] = [probability * total, counts.get(outcome) ?? 0];
    if (expected < SMALLEST) {
      rest.expected += expected;
      rest.observed += observed;
      continue;
    }
    statistic += (observed - expected) ** 2 / expected;
    cells++;
  }
  if (rest.expected > 0) {
    statistic += (rest.observed - rest.expected) ** 2 / rest.expected;
    cells++;
  }
  const degrees = cells - 1;
  const spread = 2 / (9 * degrees);
  return statistic > degrees * (1 - spread + 3.09 * Math.sqrt(spread)) ** 3;
}
