import type { Random } from "../engine/sampler/random.ts";
import { sampleFrom } from "../engine/sampler/sampler.ts";
import type { Draft } from "./drafter.ts";
import type { Sequence } from "./sequence.ts";

export interface Accepted {
  /** The accepted part of the draft and one token of the verifier's own after it. */
  readonly tokens: readonly number[];
  /** How many tokens of the draft were accepted. */
  readonly accepted: number;
}

/**
 * What of a draft the verifier accepts: tokens up to the first that it rejects, which its own replaces; after a draft
 * that is accepted whole it adds one more. The tokens are distributed exactly as the verifier alone would choose them.
 *
 * Drafts without distributions are accepted as far as they equal what the verifier chooses, greedily or by chance: the
 * same tokens, for the same seed, as without drafts. Drawn tokens are accepted as in Leviathan et al. (2023,
 * arXiv:2211.17192, algorithm 1).
 *
 * @param logits of the verifier, [draft + 1, vocabulary]: row i follows the draft's first i tokens
 */
export function acceptDraft(sequence: Sequence, draft: Draft, logits: Float32Array): Accepted {
  const { sampler, prompt } = sequence;
  const { ids, distributions } = draft;
  const size = logits.length / (ids.length + 1);
  const generated = [...sequence.generated];
  const history = { prompt, generated };
  const tokens: number[] = [];
  for (let i = 0; i <= ids.length; i++) {
    const row = logits.subarray(i * size, (i + 1) * size);
    let token: number;
    if (i === ids.length || distributions === undefined) token = sampler.sample(row, history);
    else
      token = acceptOrReplace(ids[i], sampler.distribution(row, history), distributions[i], sampler.random);
    tokens.push(token);
    if (i === ids.length || token !== ids[i]) return { tokens, accepted: i };
    generated.push(token);
  }
  throw new RangeError("a draft has an end");
}

/**
 * A token drawn from q becomes one distributed as p: itself with probability min(1, p/q), otherwise one drawn from
 * the positive part of p - q, where it cannot come again.
 */
export function acceptOrReplace(id: number, p: Float32Array, q: Float32Array, random: Random): number {
  if (random.nextFloat() * q[id] < p[id]) return id;
  const rest = p.map((probability, i) => Math.max(0, probability - q[i]));
  // Equal but for rounding: nothing is left over.
  return sampleFrom(rest.some((weight) => weight > 0) ? rest : p, random);
}
