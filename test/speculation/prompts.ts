/** Some token ids of a vocabulary of 96. */
export function promptOf(length: number, seed: number): number[] {
  return Array.from({ length }, (_, i) => (i * i * 7 + 31 * seed + 13 * i + 5) % 96);
}
