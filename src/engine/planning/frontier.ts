import { parseScheme } from "../../quantizers/scheme.ts";
import type { Planner } from "./planner.ts";

/** What one way to quantize a model promises. */
export interface FrontierPoint {
  /** Mean over the linear layers' codes. */
  readonly bits: number;
  readonly bytes: number;
  readonly loss: number;
  readonly tokensPerSecond?: number;
}

export interface Frontier {
  /** Plans for budgets of bits, ascending; `idealLoss` is that of Theorem 3.1 with the same bits. */
  readonly bits: readonly (FrontierPoint & { readonly idealLoss: number })[];
  /** Plans for speeds, descending; where times are known. */
  readonly speed: readonly FrontierPoint[];
  /** Every linear layer with one scheme, embedding and head as under bits. */
  readonly single: readonly (FrontierPoint & { readonly scheme: string })[];
}

/** Above this many bits nothing is to be gained. */
const MOST_BITS = 6;

/** Plans over the whole range of budgets, about `count` of each kind. */
export async function frontier(
  planner: Planner,
  { count, batch }: { readonly count: number; readonly batch: number | undefined },
  onProgress?: (done: number, total: number) => void,
): Promise<Frontier> {
  const total = batch === undefined ? count : 2 * count;
  const { least, most } = await planner.range("bits");
  const bits: Frontier["bits"][number][] = [];
  for (const budget of steps(least, Math.min(most, MOST_BITS), count)) {
    const { choice, idealObjective, objective, predicted } = await planner.plan({ bits: budget });
    const { bytes, loss, tokensPerSecond } = predicted;
    // What the ends lose is the same for all.
    const idealLoss = idealObjective + loss - objective;
    bits.push({ bits: planner.linearBits(choice), bytes, loss, tokensPerSecond, idealLoss });
    onProgress?.(bits.length, total);
  }
  const speed: FrontierPoint[] = [];
  if (batch !== undefined) {
    const range = await planner.range("tokensPerSecond");
    // Slower plans gain next to nothing.
    const slowest = Math.max(range.least, range.most / 5);
    for (const tokens of steps(slowest, range.most, count).reverse()) {
      const { choice, predicted } = await planner.plan({ tokensPerSecond: tokens, batch });
      const { bytes, loss, tokensPerSecond } = predicted;
      speed.push({ bits: planner.linearBits(choice), bytes, loss, tokensPerSecond });
      onProgress?.(bits.length + speed.length, total);
    }
  }
  const single = planner.palette
    .filter((scheme) => parseScheme(scheme).bits <= MOST_BITS + 2)
    .map((scheme) => {
      const choice = planner.singleScheme(scheme);
      const { bytes, loss, tokensPerSecond } = planner.predict(choice);
      return { scheme, bits: planner.linearBits(choice), bytes, loss, tokensPerSecond };
    });
  return { bits, speed, single };
}

function steps(from: number, to: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + ((to - from) * i) / Math.max(1, count - 1));
}
