/**
 * Codes of eight weights on the lattice E8 (QuIP#, section 4.2): E8P, 16 bits, and the shell of roots, 8 bits.
 *
 * @module
 */

/** Weights of a code. */
export const latticeSide = 8;

/**
 * The absolute values of E8P's points: 256 x 8 odd numbers, in halves. They are the 227 patterns of the shifted D8
 * lattice with a squared norm of up to 10, and 29 of those with 12: with five entries 3/2, the first in order.
 */
export function absoluteValues(): Uint8Array {
  const patterns: number[][] = [];
  const grow = (pattern: number[], norm: number): void => {
    const rest = latticeSide - pattern.length;
    if (norm + rest > 48) return;
    if (rest === 0) {
      const wide = pattern.includes(5);
      if (norm <= 40 || !wide) patterns.push(pattern);
      return;
    }
    for (const value of [1, 3, 5]) grow([...pattern, value], norm + value * value);
  };
  grow([], 0);
  const norm = (pattern: number[]) => pattern.reduce((sum, value) => sum + value * value, 0);
  return Uint8Array.from(
    patterns
      .sort((a, b) => norm(a) - norm(b))
      .slice(0, 256)
      .flat(),
  );
}

/**
 * All 65,536 points of E8P, times 4: 8 integers each. Of a code, the low byte is the row of the absolute values,
 * bits 8 to 14 the signs of entries 0 to 6 (entry 7's makes the sum even), bit 15 a shift by -1/4 instead of 1/4.
 */
export function e8pPoints(): Int8Array {
  const absolute = absoluteValues();
  const points = new Int8Array(65536 * latticeSide);
  for (let code = 0; code < 65536; code++) {
    const row = (code & 255) * latticeSide;
    const signs = allSigns(code >> 8, oddSum(absolute, row));
    const shift = code >> 15 ? -1 : 1;
    for (let i = 0; i < latticeSide; i++) {
      const value = 2 * absolute[row + i];
      points[code * latticeSide + i] = (signs & (1 << i) ? -value : value) + shift;
    }
  }
  return points;
}

/** Whether the sum of a row of halves is odd: then an odd number of entries is negative. */
function oddSum(absolute: Uint8Array, row: number): number {
  let sum = 0;
  for (let i = 0; i < latticeSide; i++) sum += absolute[row + i];
  return (sum >> 1) & 1;
}

/** Seven signs and the eighth that gives their number the wanted parity. */
function allSigns(signs: number, parity: number): number {
  let seven = signs & 127;
  let ones = parity;
  for (let i = 0; i < 7; i++) ones ^= (seven >> i) & 1;
  seven |= ones << 7;
  return seven;
}

/** Finds the nearest point. */
export type Nearest = (values: Float32Array, offset: number) => number;

/** The search over E8P for points times `unit`: per shift and row of absolute values the best signs are known. */
export function e8pSearch(unit: number): Nearest {
  const absolute = absoluteValues();
  const odd = Uint8Array.from({ length: 256 }, (_, row) => oddSum(absolute, row * latticeSide));
  const norms = Float64Array.from({ length: 256 }, (_, row) =>
    absolute.subarray(row * 8, row * 8 + 8).reduce((sum, value) => sum + (value * value) / 4, 0),
  );
  const size = new Float64Array(latticeSide);
  return (values, offset) => {
    let best = Number.POSITIVE_INFINITY;
    let code = 0;
    for (let shift = 0; shift < 2; shift++) {
      let negative = 0;
      let parity = 0;
      let energy = 0;
      for (let i = 0; i < latticeSide; i++) {
        const value = values[offset + i] / unit - (shift ? -0.25 : 0.25);
        if (value < 0) {
          negative |= 1 << i;
          parity ^= 1;
        }
        size[i] = Math.abs(value);
        energy += value * value;
      }
      for (let row = 0; row < 256; row++) {
        let product = 0;
        let cheapest = Number.POSITIVE_INFINITY;
        let flipped = 0;
        for (let i = 0, at = row * latticeSide; i < latticeSide; i++) {
          const term = size[i] * absolute[at + i];
          product += term;
          if (term < cheapest) {
            cheapest = term;
            flipped = i;
          }
        }
        const wrong = parity !== odd[row];
        const error = energy + norms[row] - product + (wrong ? 2 * cheapest : 0);
        if (error >= best) continue;
        best = error;
        const signs = wrong ? negative ^ (1 << flipped) : negative;
        code = row | ((signs & 127) << 8) | (shift << 15);
      }
    }
    return code;
  };
}

/** 256 points of E8 for a residual of one bit a weight, times 4: zero, the 240 roots, 15 points of norm 4. */
export function rootPoints(): Int8Array {
  const points: number[][] = [Array(latticeSide).fill(0)];
  for (let i = 0; i < latticeSide; i++) {
    for (let j = i + 1; j < latticeSide; j++) {
      for (let signs = 0; signs < 4; signs++) {
        const point: number[] = Array(latticeSide).fill(0);
        point[i] = signs & 1 ? -4 : 4;
        point[j] = signs & 2 ? -4 : 4;
        points.push(point);
      }
    }
  }
  for (let signs = 0; signs < 128; signs++) {
    const all = allSigns(signs, 0);
    points.push(Array.from({ length: latticeSide }, (_, i) => (all & (1 << i) ? -2 : 2)));
  }
  for (let i = 0; i < 15; i++) {
    points.push(Array.from({ length: latticeSide }, (_, j) => (j !== i >> 1 ? 0 : i & 1 ? -8 : 8)));
  }
  return Int8Array.from(points.flat());
}

/** The plain search over a list of points (times 4) scaled by `unit`. */
export function listSearch(points: Int8Array, unit: number): Nearest {
  const scaled = Float64Array.from(points, (value) => (value * unit) / 4);
  return (values, offset) => {
    let best = Number.POSITIVE_INFINITY;
    let code = 0;
    for (let at = 0; at < scaled.length; at += latticeSide) {
      let error = 0;
      for (let i = 0; i < latticeSide; i++) error += (values[offset + i] - scaled[at + i]) ** 2;
      if (error >= best) continue;
      best = error;
      code = at / latticeSide;
    }
    return code;
  };
}
