/**
 * Decomposition and reconstruction of the DPR model (ADAngel, section 4.2): a matrix of integers as a weighted sum of
 * matrices with fewer bits.
 *
 * @module
 */

/** P = (q1, q2, ...), equation 2: bits of each part, the lowest first. They sum to the bits of the operand. */
export type BitPartition = readonly number[];

/** A matrix of integers, row-major, its columns the dimension that products sum over. */
export interface Operand {
  readonly values: ArrayLike<number>;
  readonly bits: number;
  /** In two's complement, else from 0. */
  readonly signed: boolean;
}

/** Bits that lie below each part, equation 3. */
export function shiftsOf(partition: BitPartition): number[] {
  let below = 0;
  return partition.map((bits) => {
    below += bits;
    return below - bits;
  });
}

/**
 * The parts of every value, equation 4: x = sum over i of part i * 2^shift(i). All are unsigned but the highest of a
 * signed operand, which keeps the sign.
 */
export function decompose({ values, bits, signed }: Operand, partition: BitPartition): Operand[] {
  const whole = partition.reduce((sum, part) => sum + part, 0);
  if (whole !== bits) throw new RangeError(`the partition (${partition}) has ${whole} bits, not ${bits}`);
  const shifts = shiftsOf(partition);
  return partition.map((part, i) => {
    const highest = signed && i === partition.length - 1;
    const mask = 2 ** part - 1;
    const take = (value: number) => (highest ? value >> shifts[i] : (value >> shifts[i]) & mask);
    return { values: Array.from(values, take), bits: part, signed: highest };
  });
}

/** Codes as the integers that a codebook has for them (NUQ): the operand that is decomposed is what they stand for. */
export function throughCodebook(codes: ArrayLike<number>, levels: ArrayLike<number>): Operand {
  const all = Array.from(levels);
  const signed = all.some((level) => level < 0);
  const largest = Math.max(...all.map((level) => (level < 0 ? -level - 1 : level)), 1);
  const bits = Math.floor(Math.log2(largest)) + 1 + (signed ? 1 : 0);
  return { values: Array.from(codes, (code) => all[code]), bits, signed };
}
