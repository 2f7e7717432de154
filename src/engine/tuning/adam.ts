/** State of {@link adamStep}: means of gradients and of their squares. */
export interface Moments {
  readonly first: Float64Array;
  readonly second: Float64Array;
}

const BETA1 = 0.9;
const BETA2 = 0.99;
/** Far below any gradient that says something. */
const EPSILON = 1e-12;
/** Share of the steps that the rate rises in. */
const WARM_UP = 0.1;

/** Step number `step`, counted from 1, of Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1). */
export function adamStep(
  values: Float64Array,
  gradient: Float64Array,
  { first, second }: Moments,
  step: number,
  rate: number,
): void {
  const [bias1, bias2] = [1 - BETA1 ** step, 1 - BETA2 ** step];
  for (let i = 0; i < values.length; i++) {
    const g = gradient[i];
    first[i] += (1 - BETA1) * (g - first[i]);
    second[i] += (1 - BETA2) * (g * g - second[i]);
    values[i] -= (rate * first[i]) / bias1 / (Math.sqrt(second[i] / bias2) + EPSILON);
  }
}

/** Share of the full rate at step number `step` of `steps`: up a line, then down half a cosine to near 0. */
export function rateAt(step: number, steps: number): number {
  const rise = Math.max(1, Math.round(WARM_UP * steps));
  if (step <= rise) return step / rise;
  return 0.5 * (1 + Math.cos((Math.PI * (step - rise)) / (steps - rise + 1)));
}
