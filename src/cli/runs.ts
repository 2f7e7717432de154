/** Ascending whole numbers as runs without gaps: the first and the last number of each. */
export function runsOf(numbers: readonly number[]): (readonly [first: number, last: number])[] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run && run[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}
