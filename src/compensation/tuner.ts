/**
 * How many threads read residual rows, and how many channels each kind of layer may compensate within a slowdown (DecDEC,
 * section 4.4), from measured times.
 *
 * @module
 */
import { LAYER_KINDS, type LayerKind } from "./groups.ts";
import { type ChannelShares, uniformShares } from "./settings.ts";

/** Channels per 1024 are raised by so many at a time. */
export const TUNING_STEP = 4;
/** The most that is worth trying. */
export const MOST_CHANNELS = 256;

/**
 * Numbers of threads that may read rows while the others multiply: the paper's thread blocks for compensation. Products
 * with the rows are shared by all threads afterwards.
 */
export function readerCounts(threads: number): number[] {
  const counts: number[] = [];
  for (let readers = 1; readers < threads; readers *= 2) counts.push(readers);
  return [...counts, threads];
}

/** What compensation adds to a step, in seconds, for some numbers of channels (ascending, from 0) of one kind. */
export type MeasuredCosts = Readonly<Record<LayerKind, readonly { channels: number; seconds: number }[]>>;

/** Seconds added, between the measured points along straight lines; never falling. */
export function costOf(costs: MeasuredCosts, kind: LayerKind, channels: number): number {
  if (channels === 0) return 0;
  let [before, highest] = [{ channels: 0, seconds: 0 }, 0];
  for (const point of costs[kind]) {
    // Noise may measure more channels as faster than fewer.
    highest = Math.max(highest, point.seconds);
    const seconds = highest;
    if (point.channels >= channels) {
      const part = (channels - before.channels) / (point.channels - before.channels);
      return before.seconds + part * (seconds - before.seconds);
    }
    before = { channels: point.channels, seconds };
  }
  return before.seconds;
}

/**
 * The most channels by kind whose costs together stay within `budget` seconds: first all kinds alike, then step by step
 * each that still fits, the one that costs least more first.
 */
export function tuneChannels(costs: MeasuredCosts, budget: number): ChannelShares {
  const total = (shares: ChannelShares) =>
    LAYER_KINDS.reduce((sum, kind) => sum + costOf(costs, kind, shares[kind]), 0);
  let alike = 0;
  while (alike < MOST_CHANNELS && total(uniformShares(alike + TUNING_STEP)) <= budget) alike += TUNING_STEP;
  const shares: Record<LayerKind, number> = { ...uniformShares(alike) };
  let open = [...LAYER_KINDS];
  while (open.length > 0) {
    const increase = (kind: LayerKind) =>
      costOf(costs, kind, shares[kind] + TUNING_STEP) - costOf(costs, kind, shares[kind]);
    const inOrder = open.toSorted((a, b) => increase(a) - increase(b));
    open = inOrder.filter((kind) => {
      const raised = { ...shares, [kind]: shares[kind] + TUNING_STEP };
      if (raised[kind] > MOST_CHANNELS || total(raised) > budget) return false;
      shares[kind] = raised[kind];
      return true;
    });
  }
  return shares;
}
