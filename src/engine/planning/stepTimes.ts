/**
 * How long whole steps of a model take, its layers quantized in one way or another.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Choice } from "../../budget/plan.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { randomFiller } from "../../quantizers/randomMatrix.ts";
import { planTensors } from "../quantize/plan.ts";
import { Runner } from "../runner.ts";
import { loadWeights } from "../weights.ts";
import type { PlannableModel } from "./layers.ts";
import { randomCheckpoint } from "./randomCheckpoint.ts";

/** Models are timed in turn, so many steps at a time. */
const ROUNDS = 9;
const STEPS = 8;
/** Where in a conversation a token is timed: the cost of attention grows with it. */
const POSITION = 128;

/** Seconds of one step. */
export interface StepTime {
  /** Without other programs. */
  readonly fastest: number;
  /** The first quartile of some dozens, which other programs seldom reach. */
  readonly usual: number;
}

/** How long one step of `batch` tokens takes with each of the choices, decoding at position 128. */
export async function timeSteps(
  backend: Backend,
  checkpoint: Checkpoint,
  { decoder }: PlannableModel,
  choices: readonly (readonly Choice[])[],
  batch: number,
  signal?: AbortSignal,
): Promise<StepTime[]> {
  const fill = randomFiller();
  const context = Math.min(decoder.contextLength, POSITION + STEPS);
  const runners: { runner: Runner; samples: number[] }[] = [];
  for (const choice of choices) {
    const random = randomCheckpoint(checkpoint, planTensors(checkpoint, { scheme: "nuq-4", choice }), fill);
    const weights = await loadWeights(decoder, random, backend, "f32");
    const reading = { activations: "int8" } as const;
    const runner = new Runner(decoder, weights, backend, {
      sequences: batch,
      context,
      chunk: batch,
      reading,
    });
    runners.push({ runner, samples: [] });
  }
  const ids = Array.from({ length: batch }, (_, i) => i % decoder.vocabularySize);
  const sequences = ids.map((_, i) => i);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { runner, samples } of runners) {
      for (let step = 0; step < STEPS; step++) {
        const positions = ids.map(() => context - STEPS + step);
        const started = performance.now();
        await runner.step({ ids, positions, sequences }, "all");
        // The first round warms up, and the first step of a turn finds caches full of another model.
        if (round > 0 && step > 0) samples.push((performance.now() - started) / 1000);
      }
      await new Promise((resolve) => setTimeout(resolve));
      signal?.throwIfAborted();
    }
  }
  return runners.map(({ samples }) => {
    const sorted = samples.toSorted((a, b) => a - b);
    return { fastest: sorted[0], usual: sorted[sorted.length >> 2] };
  });
}
