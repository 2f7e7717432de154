/** From values to places along an axis, with the values to write beside it. */
export interface Scale {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

/** Where an axis begins and ends on the page. */
export interface Extent {
  readonly from: number;
  readonly to: number;
}

/** Equal steps for equal differences; covers the values, which may be none, with up to nine round ticks. */
export function linearScale(values: readonly number[], { from, to }: Extent): Scale {
  const [low, high] = bounds(values, 0, 1);
  const largest = Math.max(Math.abs(low), Math.abs(high));
  // Around a lone value as much as it is large: finer steps would drown in its rounding.
  const span = high - low > 1e-6 * largest ? high - low : largest || 1;
  const step = roundStep(span / 7);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
  const [start, end] = [ticks[0], ticks[ticks.length - 1]];
  return { ticks, place: (value) => from + ((value - start) / (end - start)) * (to - from) };
}

/** Equal steps for equal ratios; covers the values, all above 0. Ticks at 1, 2, 5 x 10^n, or 10^n when those crowd. */
export function logScale(values: readonly number[], { from, to }: Extent): Scale {
  const [low, high] = bounds(values, 1, 10);
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 10; power++) {
    for (const digit of [1, 2, 5]) all.push(Number(`${digit}e${power}`));
  }
  const first = all.findLastIndex((tick) => tick <= low * (1 + 1e-9));
  const last = Math.max(
    first + 1,
    all.findIndex((tick) => tick >= high * (1 - 1e-9)),
  );
  const covered = all.slice(first, last + 1);
  const start = Math.log(covered[0]);
  const length = Math.log(covered[covered.length - 1]) - start;
  const decades = covered.filter((tick) => Number.isInteger(Number(Math.log10(tick).toFixed(9))));
  return {
    ticks: covered.length > 7 ? decades : covered,
    place: (value) => from + ((Math.log(value) - start) / length) * (to - from),
  };
}

function bounds(values: readonly number[], low: number, high: number): [number, number] {
  return values.length === 0 ? [low, high] : [Math.min(...values), Math.max(...values)];
}

/** 1, 2 or 5 x 10^n, the first one not below `step`. */
function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find((digit) => digit * power >= step * (1 - 1e-9))!;
}
