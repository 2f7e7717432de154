/**
 * The best scalar quantizers of the unit Gaussian, computed to double precision.
 *
 * @module
 */

const density = (x: number) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);

/** Nodes and weights of the 5-point Gauss-Legendre rule on [-1, 1]. */
const rule = [
  [0, 128 / 225],
  [1, (322 + 13 * Math.sqrt(70)) / 900],
  [2, (322 - 13 * Math.sqrt(70)) / 900],
].flatMap(([root, weight]) => {
  const node = root === 0 ? 0 : Math.sqrt(5 + (root === 1 ? -2 : 2) * Math.sqrt(10 / 7)) / 3;
  return root === 0 ? [[0, weight]] : [-node, node].map((x) => [x, weight]);
});

/** Integral of f against the density over [from, to], in panels of at most 1/16. */
function integrate(f: (x: number) => number, from: number, to: number): number {
  const end = Math.min(to, from + 16);
  const panels = Math.ceil((end - from) * 16);
  const half = (end - from) / panels / 2;
  let sum = 0;
  for (let panel = 0; panel < panels; panel++) {
    const middle = from + (2 * panel + 1) * half;
    for (const [node, weight] of rule) {
      const x = middle + node * half;
      sum += weight * half * f(x) * density(x);
    }
  }
  return sum;
}

/**
 * The positive half of the 2^bits Lloyd-Max levels: each level is the centroid of its cell, solved by Newton's
 * method on the tridiagonal system level[i] = centroid(threshold[i - 1], threshold[i]).
 */
export function lloydMaxLevels(bits: number): number[] {
  const count = 2 ** (bits - 1);
  // Bennett's companding law: levels are spread like a Gaussian of variance 3.
  let levels = Array.from(
    { length: count },
    (_, i) => Math.sqrt(3) * quantile(0.5 + (i + 0.5) / (2 * count)),
  );
  for (let round = 0; round < 300; round++) {
    // Some sweeps of Lloyd's iteration bring the levels close enough for Newton's.
    const newton = round >= 200;
    const edges = [0, ...levels.slice(1).map((level, i) => (level + levels[i]) / 2), Infinity];
    const residual: number[] = [];
    const below: number[] = [];
    const above: number[] = [];
    for (let i = 0; i < count; i++) {
      const mass = integrate(() => 1, edges[i], edges[i + 1]);
      const centroid = integrate((x) => x, edges[i], edges[i + 1]) / mass;
      residual.push(centroid - levels[i]);
      // d centroid / d edge, halved because an edge moves half as far as a level.
      below.push(i > 0 ? ((centroid - edges[i]) * density(edges[i])) / mass / 2 : 0);
      above.push(i < count - 1 ? ((edges[i + 1] - centroid) * density(edges[i + 1])) / mass / 2 : 0);
    }
    const step = newton ? solveTridiagonal(below, above, residual) : residual;
    levels = levels.map((level, i) => level + step[i]);
    if (newton && step.every((s) => Math.abs(s) < 1e-13)) return levels;
  }
  throw new Error(`Lloyd-Max levels of ${bits} bits did not converge`);
}

/** Solves (1 - below[i] - above[i]) s[i] - below[i] s[i - 1] - above[i] s[i + 1] = right[i]. */
function solveTridiagonal(below: number[], above: number[], right: number[]): number[] {
  const count = right.length;
  const upper = new Array<number>(count).fill(0);
  const solution = new Array<number>(count).fill(0);
  for (let i = 0; i < count; i++) {
    const pivot = 1 - below[i] - above[i] - (i > 0 ? below[i] * upper[i - 1] : 0);
    upper[i] = above[i] / pivot;
    solution[i] = (right[i] + (i > 0 ? below[i] * solution[i - 1] : 0)) / pivot;
  }
  for (let i = count - 2; i >= 0; i--) solution[i] += upper[i] * solution[i + 1];
  return solution;
}

/** Inverse of the normal distribution function for p >= 1/2, by bisection. */
function quantile(p: number): number {
  let low = 0;
  let high = 8;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (0.5 + integrate(() => 1, 0, middle) < p) low = middle;
    else high = middle;
  }
  return low;
}

/** The step of the symmetric uniform quantizer of 2^bits levels with the least squared error. */
export function uniformStep(bits: number): number {
  const count = 2 ** (bits - 1);
  const error = (step: number) => {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const edge = i < count - 1 ? (i + 1) * step : Infinity;
      sum += integrate((x) => (x - (i + 0.5) * step) ** 2, i * step, edge);
    }
    return sum;
  };
  const ratio = (Math.sqrt(5) - 1) / 2;
  let low = 0.5 / count;
  let high = 8 / count;
  while (high - low > 1e-7) {
    const [a, b] = [high - ratio * (high - low), low + ratio * (high - low)];
    if (error(a) < error(b)) high = b;
    else low = a;
  }
  return (low + high) / 2;
}
