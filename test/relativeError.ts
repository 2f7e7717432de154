/** Largest difference over largest magnitude; infinite when something is not a number. */
export function relativeError(actual: Float32Array, expected: Float32Array): number {
  let difference = 0;
  let magnitude = 0;
  for (let i = 0; i < expected.length; i++) {
    difference = Math.max(difference, Math.abs(actual[i] - expected[i]));
    magnitude = Math.max(magnitude, Math.abs(expected[i]));
  }
  if (actual.length !== expected.length || Number.isNaN(difference)) return Infinity;
  return difference === 0 ? 0 : difference / magnitude;
}
