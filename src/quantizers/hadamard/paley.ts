/**
 * Paley's Hadamard matrices of order q + 1 (I: q = 3 mod 4) and 2 (q + 1) (II: q = 1 mod 4), q a prime power
 * (R. E. A. C. Paley, On orthogonal matrices, 1933).
 *
 * @module
 */

/** A Hadamard matrix of the given order as row-major +-1, or undefined where neither construction applies. */
export function paley(order: number): Int8Array | undefined {
  if (order % 4 !== 0) return undefined;
  const first = primePower(order - 1);
  if (first) return paleyOne(order, first);
  const second = primePower(order / 2 - 1);
  return second && (order / 2 - 1) % 4 === 1 ? paleyTwo(order, second) : undefined;
}

/** H = I + [[0, 1], [-1, Q]] with Q[i, j] = character of i - j. */
function paleyOne(order: number, [p, degree]: PrimePower): Int8Array {
  const q = jacobsthal(p, degree);
  const h = new Int8Array(order * order).fill(1, 0, order);
  for (let i = 1; i < order; i++) {
    h[i * order] = -1;
    for (let j = 1; j < order; j++) h[i * order + j] = i === j ? 1 : q[(i - 1) * (order - 1) + j - 1];
  }
  return h;
}

/** H = C x [[1, 1], [1, -1]] + I x [[1, -1], [-1, -1]] with the conference matrix C = [[0, 1], [1, Q]]. */
function paleyTwo(order: number, [p, degree]: PrimePower): Int8Array {
  const q = jacobsthal(p, degree);
  const half = order / 2;
  const h = new Int8Array(order * order);
  for (let i = 0; i < half; i++) {
    for (let j = 0; j < half; j++) {
      const c = i === 0 || j === 0 ? 1 : q[(i - 1) * (half - 1) + j - 1];
      const block = i === j ? [1, -1, -1, -1] : [c, c, c, -c];
      const at = 2 * i * order + 2 * j;
      h[at] = block[0];
      h[at + 1] = block[1];
      h[at + order] = block[2];
      h[at + order + 1] = block[3];
    }
  }
  return h;
}

/** [prime, exponent] */
type PrimePower = readonly [number, number];

function primePower(q: number): PrimePower | undefined {
  if (q < 3 || q % 2 === 0) return undefined;
  let p = 3;
  while (p * p <= q && q % p !== 0) p += 2;
  if (p * p > q) return [q, 1];
  let degree = 0;
  for (let rest = q; rest > 1; degree++) {
    if (rest % p !== 0) return undefined;
    rest /= p;
  }
  return [p, degree];
}

/** Q[i, j] = quadratic character of i - j in GF(p^degree), elements numbered by their base-p digits. */
function jacobsthal(p: number, degree: number): Int8Array {
  const q = p ** degree;
  const character = quadraticCharacter(p, degree);
  const matrix = new Int8Array(q * q);
  for (let i = 0; i < q; i++) {
    for (let j = 0; j < q; j++) {
      let difference = 0;
      for (let place = 1, a = i, b = j; place < q; place *= p) {
        difference += place * (((a % p) - (b % p) + p) % p);
        a = Math.floor(a / p);
        b = Math.floor(b / p);
      }
      matrix[i * q + j] = character[difference];
    }
  }
  return matrix;
}

/**
 * The powers of x modulo the first monic polynomial for which x generates all q - 1 nonzero elements:
 * even powers are the squares.
 */
function quadraticCharacter(p: number, degree: number): Int8Array {
  const q = p ** degree;
  const top = q / p;
  for (let polynomial = 1; polynomial < q; polynomial++) {
    const character = new Int8Array(q);
    let element = 1;
    let power = 0;
    do {
      character[element] = power++ % 2 === 0 ? 1 : -1;
      // Times x: shift the digits up; the digit that leaves comes back times the lower coefficients.
      const leading = Math.floor(element / top);
      let next = 0;
      for (let place = 1, a = (element % top) * p, b = polynomial; place < q; place *= p) {
        next += place * (((a % p) + leading * (b % p)) % p);
        a = Math.floor(a / p);
        b = Math.floor(b / p);
      }
      element = next;
    } while (element !== 0 && character[element] === 0);
    if (element === 1 && power === q - 1) return character;
  }
  throw new RangeError(`no field of ${q} elements`);
}
