/** A source of uniform random numbers. */
export interface Random {
  /** The next 32 random bits, as an unsigned number. */
  nextUint32(): number;
  /** The next number in [0, 1), a multiple of 2^-53. */
  nextFloat(): number;
}

const mask64 = (1n << 64n) - 1n;

/** SplitMix64 (Steele, Lea, Flood 2014), which spreads a seed over a larger state. */
export function splitMix64(seed: bigint): () => bigint {
  let state = seed & mask64;
  return () => {
    state = (state + 0x9e3779b97f4a7c15n) & mask64;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask64;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask64;
    return z ^ (z >> 31n);
  };
}

/**
 * xoshiro128** 1.1 (Blackman and Vigna, https://prng.di.unimi.it), its 128 bits of state filled from two
 * outputs of SplitMix64, low halves first. Integer arithmetic only: the same seed gives the same numbers
 * in every JavaScript engine.
 */
export function createRandom(seed: number): Random {
  const next = splitMix64(BigInt(seed));
  const [low, high] = [next(), next()];
  let a = Number(low & 0xffffffffn) | 0;
  let b = Number(low >> 32n) | 0;
  let c = Number(high & 0xffffffffn) | 0;
  let d = Number(high >> 32n) | 0;

  function nextUint32(): number {
    const product = Math.imul(b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return result;
  }

  return {
    nextUint32,
    nextFloat: () => ((nextUint32() >>> 5) * 2 ** 26 + (nextUint32() >>> 6)) / 2 ** 53,
  };
}

/** A seed nobody chose. */
export function randomSeed(): number {
  const [low, high] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low;
}
