/**
 * What a model's products, and everything else, cost on a backend (Q-Palette, section E.2).
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Choice } from "../../budget/plan.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { randomWord } from "../../quantizers/random.ts";
import { type CostProfile, Costs, type ProductTime } from "./costs.ts";
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
 * Measures a cost profile. Products are timed by themselves; whole steps of a few random mixes then say what the rest of
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
  const mixes = testMixes(layers, times, schemes);
  const alone = new Costs({ batch, threads: backend.threads, overheadSeconds: 0, times });
  const products = mixes.map((mix) => alone.stepSeconds(mix, layers, headIsTied)!);
  const steps = await timeSteps(backend, checkpoint, model, mixes, batch, signal);
  const { factor, overheadSeconds } = fitSteps(products, steps);
  const scaled = times.map((time) => ({ ...time, seconds: time.seconds * factor }));
  return { batch, threads: backend.threads, overheadSeconds, times: scaled };
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

/**
 * Mixes of fast, of middling and of slow schemes, and of all of them: what they take together spans what plans take.
 */
function testMixes(
  layers: readonly PlannableLayer[],
  times: readonly ProductTime[],
  schemes: readonly string[],
): Choice[][] {
  const total = (scheme: string) =>
    times.reduce((sum, time) => sum + (time.scheme === scheme ? time.seconds : 0), 0);
  const bySpeed = schemes.toSorted((a, b) => total(a) - total(b));
  const third = Math.max(1, Math.floor(bySpeed.length / 3));
  const parts = [bySpeed.slice(0, third), bySpeed.slice(third, 2 * third), bySpeed.slice(-third), bySpeed];
  return parts
    .filter((part) => part.length > 0)
    .map((part, seed) => {
      const draw = (i: number) => part[randomWord(seed, i) % part.length];
      return fuseEqual(layers, new Map(layers.map(({ name }, i) => [name, draw(i)])));
    });
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
  const factor = Number.isFinite(slope) ? Math.min(1.5, Math.max(0.67, slope)) : 1;
  return { factor, overheadSeconds: Math.max(0, (y - factor * x) / w) };
}
