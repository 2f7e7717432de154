/**
 * How a Hadamard matrix of a given size is put together.
 *
 * @module
 */
import { paley } from "./paley.ts";
import { williamson } from "./williamson.ts";

/** A Hadamard matrix that is stored whole. */
export interface Base {
  readonly order: number;
  /** Row-major +-1, [order, order]. Not symmetric in general. */
  readonly matrix: Int8Array;
}

/**
 * The matrix I_blocks x H_bases[0] x H_bases[1] x ... x H_2 x H_2 x ... (Kronecker products, `stages` factors
 * H_2): size = blocks * product of the base orders * 2^stages, the Walsh-Hadamard part running fastest.
 */
export interface HadamardPlan {
  readonly size: number;
  /** 1 for a full Hadamard matrix; above 1 where none is known here, see {@link planHadamard}. */
  readonly blocks: number;
  readonly bases: readonly Base[];
  readonly stages: number;
}

/** A base costs `order` additions per element, so larger ones are slower than they are worth. */
const LARGEST_BASE = 1024;

/**
 * The cheapest known matrix of a size: with odd part d, Kronecker products of Paley and Williamson matrices
 * whose odd parts multiply to d, e.g. 29568 = 12 * 28 * 44 * 2, with the least sum of orders.
 *
 * Where none is known (odd sizes, 2 * odd, large primes) the matrix is block diagonal with blocks of the largest
 * divisor that has one: 17 -> 17 blocks of 1, 118 -> 59 blocks of 2.
 */
export function planHadamard(size: number): HadamardPlan {
  const [odd, twos] = splitTwos(size);
  // Divisor 1, the plain Walsh-Hadamard matrix, always has a plan.
  let part = odd;
  let orders: number[] | undefined;
  for (const divisor of divisorsOf(odd)) {
    part = divisor;
    orders = cheapestOrders(divisor, twos);
    if (orders) break;
  }
  orders ??= [];
  const block = part * 2 ** twos;
  const stages = orders.reduce((left, order) => left - splitTwos(order)[1], twos);
  const bases = orders.map((order) => ({ order, matrix: hadamardOf(order)! }));
  return { size, blocks: size / block, bases, stages };
}

/** Orders of bases whose odd parts multiply to `odd`, with at most `twos` factors of 2 in all. */
function cheapestOrders(odd: number, twos: number, atLeast = 3): number[] | undefined {
  if (odd === 1) return [];
  let best: number[] | undefined;
  for (const part of divisorsOf(odd)) {
    if (part < atLeast) break;
    for (let used = 2; used <= twos && part * 2 ** used <= LARGEST_BASE; used++) {
      const order = part * 2 ** used;
      if (best && order >= sum(best)) break;
      const rest = cheapestOrders(odd / part, twos - used, part);
      if (rest && (!best || order + sum(rest) < sum(best)) && hadamardOf(order)) best = [order, ...rest];
    }
  }
  return best;
}

function hadamardOf(order: number): Int8Array | undefined {
  return paley(order) ?? williamson(order);
}

/** [odd part, exponent of 2] */
function splitTwos(size: number): [number, number] {
  let odd = size;
  let twos = 0;
  for (; odd % 2 === 0; odd /= 2) twos++;
  return [odd, twos];
}

/** Largest first. */
function divisorsOf(n: number): number[] {
  const small: number[] = [];
  for (let d = 1; d * d <= n; d++) if (n % d === 0) small.push(d);
  const large = small.map((d) => n / d);
  return [...new Set([...large, ...small.reverse()])];
}

function sum(orders: readonly number[]): number {
  return orders.reduce((total, order) => total + order, 0);
}
