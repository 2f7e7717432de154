/**
 * Chooses the next token.
 *
 * Order: logit bias, penalties (both as in vLLM), temperature, top-k, top-p, min-p (as in transformers), and
 * a draw from what is left, renormalized.
 *
 * @module
 */

import {
  type Candidates,
  createCandidates,
  drawCandidate,
  fillCandidates,
  totalWeight,
} from "./candidates.ts";
import { argmax } from "./greedy.ts";
import { addLogitBias } from "./logitBias.ts";
import { applyMinP } from "./minP.ts";
import { checkSamplerOptions, type SamplerOptions } from "./options.ts";
import { applyPenalties, type TokenHistory } from "./penalties.ts";
import { createRandom, type Random, randomSeed } from "./random.ts";
import { topKThreshold } from "./topK.ts";
import { applyTopP } from "./topP.ts";

export interface Sampler {
  /**
   * Chooses a token. The logits, [vocabulary], stay as they are.
   *
   * @throws LogitsError when they hold NaN or +Infinity, or when no token can be chosen.
   */
  sample(logits: Float32Array, history: TokenHistory): number;
  /**
   * The distribution that `sample` draws from, over the whole vocabulary: zero for tokens that were cut, a
   * single one for greedy.
   */
  distribution(logits: Float32Array, history: TokenHistory): Float32Array;
  /** Whether it takes the likeliest token, and nothing is left to chance. */
  readonly greedy: boolean;
  /** The generator that `sample` draws from. */
  readonly random: Random;
  /** Its seed, for saying how to repeat the answer. */
  readonly seed: number;
}

/** Scratch space for one vocabulary size. */
interface Workspace {
  readonly logits: Float32Array;
  readonly selection: Float32Array;
  readonly candidates: Candidates;
  readonly pool: Candidates;
}

/**
 * Makes a sampler with its own random numbers.
 *
 * @throws UsageError for options outside their ranges.
 */
export function createSampler(options: SamplerOptions = {}): Sampler {
  const checked = checkSamplerOptions(options);
  const { temperature, topK, topP, minP, logitBias } = checked;
  const seed = checked.seed ?? randomSeed();
  const random = createRandom(seed);
  const penalizes =
    checked.repetitionPenalty !== 1 || checked.presencePenalty !== 0 || checked.frequencyPenalty !== 0;
  let workspace: Workspace | undefined;

  function workspaceFor(size: number): Workspace {
    if (workspace?.logits.length !== size) {
      workspace = {
        logits: new Float32Array(size),
        selection: new Float32Array(size),
        candidates: createCandidates(size),
        pool: createCandidates(size),
      };
    }
    return workspace;
  }

  function adjust(logits: Float32Array, history: TokenHistory): Float32Array {
    if (!penalizes && logitBias.length === 0) return logits;
    const adjusted = workspaceFor(logits.length).logits;
    adjusted.set(logits);
    addLogitBias(adjusted, logitBias);
    if (penalizes) applyPenalties(adjusted, history, checked);
    return adjusted;
  }

  function select(adjusted: Float32Array, best: number): Candidates {
    const { selection, candidates, pool } = workspaceFor(adjusted.length);
    const threshold = topK > 0 ? topKThreshold(adjusted, topK, selection) : -Infinity;
    fillCandidates(candidates, adjusted, adjusted[best], temperature, threshold);
    applyTopP(candidates, topP, pool);
    applyMinP(candidates, minP);
    return candidates;
  }

  return {
    greedy: temperature === 0,
    random,
    seed,
    sample(logits, history) {
      const adjusted = adjust(logits, history);
      const best = argmax(adjusted);
      if (temperature === 0) return best;
      return drawCandidate(select(adjusted, best), random.nextFloat());
    },
    distribution(logits, history) {
      const adjusted = adjust(logits, history);
      const best = argmax(adjusted);
      const probabilities = new Float32Array(logits.length);
      if (temperature === 0) {
        probabilities[best] = 1;
        return probabilities;
      }
      const candidates = select(adjusted, best);
      const total = totalWeight(candidates);
      for (let i = 0; i < candidates.count; i++) {
        probabilities[candidates.ids[i]] = candidates.weights[i] / total;
      }
      return probabilities;
    },
  };
}

/** Draws a token from a distribution (or anything proportional to one) over the vocabulary. */
export function sampleFrom(distribution: Float32Array, random: Random): number {
  let total = 0;
  for (const weight of distribution) total += weight;
  let left = random.nextFloat() * total;
  let last = 0;
  for (let id = 0; id < distribution.length; id++) {
    if (distribution[id] === 0) continue;
    left -= distribution[id];
    last = id;
    if (left < 0) break;
  }
  return last;
}
