/**
 * What a model's products, and everything else, cost on a backend (Q-Palette, section E.2).
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Choice } from "../../budget/plan.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { median } from "../../median.ts";
import { distortions } from "../../quantizers/distortions.ts";
import { randomWord } from "../../quantizers/random.ts";
import { type CostProfile, Costs } from "./costs.ts";
import type { PlannableLayer, PlannableModel } from "./layers.ts";
import { storedBytes } from "./problem.ts";
import { type Shape, timeProducts } from "./productTimes.ts";
import { fuseEqual, fusibleSets } from "./sets.ts";
import { timeSteps } from "./stepTimes.ts";

export interface ProfileOptions {
  readonly model: PlannableModel;
  readonly schemes: readonly string[];
  /** Sequences that a step decodes side by side. */
  readonly batch: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** What a typical plan weighs per weight: how much of the caches it fills. */
const TYPICAL = "nuq-4";

/**
 * Measures a cost profile. Products are timed by themselves; whole steps of a few mixes then say what the rest of
 * a step takes, and by how much products in a step differ from products alone.
 */
export async function measureProfile(
  backend: Backend,
  checkpoint: Checkpoint,
  { model, schemes, batch, onProgress, signal }: ProfileOptions,
): Promise<CostProfile> {
  const { layers, decoder } = model;
  const headIsTied = decoder.head === decoder.embedding;
  const shapes = shapesOf(layers, headIsTied);
  const modelBytes = layers.reduce((sum, layer) => sum + storedBytes(layer, TYPICAL).codes, 0);
  const times = await timeProducts(backend, { shapes, schemes, batch, modelBytes, onProgress, signal });
  const alone = new Costs({ batch, threads: backend.threads, overheadSeconds: 0, times });
  const mixes = testMixes(layers, alone, schemes, headIsTied);
  const products = mixes.map((mix) => alone.stepSeconds(mix, layers, headIsTied)!);
  const steps = await timeSteps(backend, checkpoint, model, mixes, batch, signal);
  // Products are timed by their fastest run, so steps are too; then all are as slow as steps usually are.
  const { factor, overheadSeconds } = fitSteps(
    products,
    steps.map(({ fastest }) => fastest),
  );
  const slower = Math.min(MOST_SLOWER, median(steps.map(({ fastest, usual }) => usual / fastest)));
  const scaled = times.map((time) => ({ ...time, seconds: time.seconds * factor * slower }));
  return { batch, threads: backend.threads, overheadSeconds: overheadSeconds * slower, times: scaled };
}

/** Rows and columns of everything that is multiplied as one matrix. */
function shapesOf(layers: readonly PlannableLayer[], headIsTied: boolean): Shape[] {
  const shapes = new Map<string, Shape>();
  for (const set of fusibleSets(layers)) {
    if (set[0].role === "embedding" && !headIsTied) continue;
    const rows = set.reduce((sum, layer) => sum + layer.rows, 0);
    const { columns } = set[0];
    shapes.set(`${rows} ${columns}`, { rows, columns });
  }
  return [...shapes.values()];
}

/** A machine where steps usually take longer than that is busy with something else. */
const MOST_SLOWER = 1.1;
/** How much longer than the fastest mix the products of the test mixes take. */
const TEST_TIMES = [1, 1.5, 3, 6];

/**
 * Mixes as plans for several speeds would be, for layers of made-up sensitivities: few schemes, fused where they are
 * equal. Steps of mixes that are drawn without sense take longer, for their schemes change from product to product.
 */
function testMixes(
  layers: readonly PlannableLayer[],
  alone: Costs,
  schemes: readonly string[],
  headIsTied: boolean,
): Choice[][] {
  const options = layers.map((layer, i) => {
    const group = layers.findIndex(({ name }) => name === (layer.group ?? layer.name));
    const sensitivity = layer.rows * layer.columns * 10 ** (randomUnit(1, group) + randomUnit(2, i) / 4);
    return schemes.flatMap((scheme) => {
      const seconds = alone.secondsOf([layer], scheme, headIsTied);
      return seconds === undefined ? [] : [{ scheme, seconds, loss: sensitivity * distortions[scheme] }];
    });
  });
  const chosen = (price: number) =>
    options.map((list) =>
      list.reduce((a, b) => (b.loss + price * b.seconds < a.loss + price * a.seconds ? b : a)),
    );
  const secondsAt = (price: number) => chosen(price).reduce((sum, { seconds }) => sum + seconds, 0);
  const mixOf = (price: number) =>
    fuseEqual(layers, new Map(chosen(price).map(({ scheme }, i) => [layers[i].name, scheme])));
  const fastest = options.reduce((sum, list) => sum + Math.min(...list.map(({ seconds }) => seconds)), 0);
  return TEST_TIMES.map((times) => mixOf(priceFor(secondsAt, times * fastest)));
}

/** The least power of two, in steps of an eighth, at which the seconds are within a limit. */
function priceFor(secondsAt: (price: number) => number, limit: number): number {
  for (let exponent = -100; exponent < 200; exponent += 0.125) {
    if (secondsAt(2 ** exponent) <= limit) return 2 ** exponent;
  }
  return 2 ** 200;
}

/** Uniform in [-1, 1). */
function randomUnit(stream: number, index: number): number {
  return randomWord(stream, index) / 2 ** 31 - 1;
}

/** step = overhead + factor x products by least squares of the relative errors, both within reason. */
export function fitSteps(
  products: readonly number[],
  steps: readonly number[],
): { factor: number; overheadSeconds: number } {
  let [w, x, y, xx, xy] = [0, 0, 0, 0, 0];
  for (const [i, step] of steps.entries()) {
    const weight = 1 / (step * step);
    w += weight;
    x += weight * products[i];
    y += weight * step;
    xx += weight * products[i] * products[i];
    xy += weight * products[i] * step;
  }
  const slope = (w * xy - x * y) / (w * xx - x * x);
  const factor = Number.isFinite(slope) ? Math.min(1.2, Math.max(0.85, slope)) : 1;
  return { factor, overheadSeconds: Math.max(0, (y - factor * x) / w) };
}
