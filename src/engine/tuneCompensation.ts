import { LAYER_KINDS, type LayerKind } from "../compensation/groups.ts";
import { DEFAULT_CHANNELS, type TunedSettings, uniformShares } from "../compensation/settings.ts";
import { type MeasuredCosts, MOST_CHANNELS, readerCounts, tuneChannels } from "../compensation/tuner.ts";
import { UsageError } from "../errors.ts";
import type { Model } from "./model.ts";
import type { Reading } from "./reading.ts";
import type { Runner } from "./runner.ts";

/** Channels per 1024 that each kind is timed with. */
const POINTS = [16, 64, 128, MOST_CHANNELS];
/** Every reading is timed so often, in turn with the others; the fastest counts, for other programs only slow it. */
const ROUNDS = 24;
/** How often the result is measured and, while it is too slow, cut down. */
const TRIES = 4;

export interface TunedCompensation extends TunedSettings {
  /** Seconds of a decoding step without compensation, and with it. */
  readonly secondsWithout: number;
  readonly seconds: number;
  readonly costs: MeasuredCosts;
}

export interface TuneCompensationOptions {
  /** Share of a step's time that may be added, e.g. .05. */
  readonly slowdown: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Throws a UsageError when a model has nothing to compensate with. */
export function requireResidual({ weights, source }: Pick<Model, "weights" | "source">): void {
  if (!weights.residuals) throw new UsageError(`${source}: has no residual; quantize it with --residual 4`);
}

/**
 * Finds by measurement how many threads read rows that stay in a file, and how many channels a model may compensate within
 * a slowdown. Overwrites the cache.
 */
export async function tuneCompensation(
  model: Pick<Model, "runner" | "source" | "weights" | "backend">,
  { slowdown, onProgress, signal }: TuneCompensationOptions,
): Promise<TunedCompensation> {
  const { runner, weights, backend } = model;
  requireResidual(model);
  const { compensation, ...plain } = runner.reading;
  const { select } = compensation!;
  const readers = weights.residuals?.inFile ? await fastestReaders(runner, backend.threads) : undefined;
  const { costs, secondsWithout } = await measureCosts(runner, {
    readers,
    onProgress: (done, total) => onProgress?.(done, total + 1),
    signal,
  });
  let budget = slowdown * secondsWithout;
  let result: TunedCompensation | undefined;
  for (let i = 0; i < TRIES; i++) {
    const channels = tuneChannels(costs, budget);
    const compensated = { ...plain, compensation: { channels, select, readers } };
    const [without, seconds] = await fastest(runner, [plain, compensated]);
    result = { channels, readers, secondsWithout: without, seconds, costs };
    if (seconds <= without * (1 + slowdown)) break;
    // Together the kinds cost more than each alone says.
    budget *= Math.min(0.9, (slowdown * without) / (seconds - without));
  }
  onProgress?.(1, 1);
  return result!;
}

/** What some numbers of channels of each kind of layer add to a step of a runner whose model has a residual. */
export async function measureCosts(
  runner: Runner,
  {
    readers,
    onProgress,
    signal,
  }: Pick<TuneCompensationOptions, "onProgress" | "signal"> & Pick<TunedSettings, "readers"> = {},
): Promise<{ readonly costs: MeasuredCosts; readonly secondsWithout: number }> {
  const { compensation, ...plain } = runner.reading;
  const select = compensation?.select ?? "exact";
  const only = (kind: LayerKind, channels: number): Reading => {
    const shares = { ...uniformShares(0), [kind]: channels };
    return { ...plain, compensation: { channels: shares, select, readers } };
  };
  const single = LAYER_KINDS.flatMap((kind) => POINTS.map((channels) => ({ kind, channels })));
  // One reading after the other beside the plain one: a runner keeps few recorded steps.
  const added: number[] = [];
  let secondsWithout = Infinity;
  for (const [i, { kind, channels }] of single.entries()) {
    const [without, seconds] = await fastest(runner, [plain, only(kind, channels)]);
    secondsWithout = Math.min(secondsWithout, without);
    added.push(Math.max(0, seconds - without));
    onProgress?.(i + 1, single.length);
    signal?.throwIfAborted();
  }
  const costs = Object.fromEntries(
    LAYER_KINDS.map((kind) => [
      kind,
      single.flatMap((point, i) => (point.kind === kind ? [{ ...point, seconds: added[i] }] : [])),
    ]),
  ) as unknown as MeasuredCosts;
  return { costs, secondsWithout };
}

/** The paper's first phase: which number of readers takes the usual number of channels fastest. */
async function fastestReaders(runner: Runner, threads: number): Promise<number> {
  const { compensation, ...plain } = runner.reading;
  const counts = readerCounts(threads);
  if (counts.length === 1) return threads;
  const settings = { channels: uniformShares(DEFAULT_CHANNELS), select: compensation!.select };
  const seconds = await fastest(
    runner,
    counts.map((readers) => ({ ...plain, compensation: { ...settings, readers } })),
  );
  return counts[seconds.indexOf(Math.min(...seconds))];
}

async function fastest(runner: Runner, readings: readonly Reading[]): Promise<number[]> {
  const best = readings.map(() => Infinity);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, reading] of readings.entries()) {
      const ids = [(round * 7919 + 1) % runner.spec.vocabularySize];
      const positions = [round % runner.cache.capacity];
      const started = performance.now();
      await runner.step({ ids, positions }, "last", reading);
      best[i] = Math.min(best[i], (performance.now() - started) / 1000);
    }
  }
  return best;
}
