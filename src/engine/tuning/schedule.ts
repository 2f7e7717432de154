import { randomWord } from "../../quantizers/random.ts";

/** Numbers below `count` in the order of `total` readings: whole rounds through all of them, each shuffled anew. */
export function readingOrder(total: number, count: number, seed: number): number[] {
  const order: number[] = [];
  for (let round = 0; order.length < total; round++) order.push(...shuffled(count, randomWord(seed, round)));
  return order.slice(0, total);
}

function shuffled(count: number, seed: number): number[] {
  const numbers = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = randomWord(seed, i) % (i + 1);
    [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
  }
  return numbers;
}
