/** Token ids of each sequence. */
export type Sequences = readonly (readonly number[])[];

/** Tokens of the longest sequence, at least 1. */
export function longestOf(sequences: Sequences): number {
  return sequences.reduce((most, { length }) => Math.max(most, length), 1);
}

/** Tokens of all sequences. */
export function tokensOf(sequences: Sequences): number {
  return sequences.reduce((sum, { length }) => sum + length, 0);
}
