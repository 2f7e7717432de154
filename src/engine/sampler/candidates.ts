/**
 * The tokens still in the running, in ascending order of id, with weights proportional to their
 * probabilities (the largest weight is 1). Filters shorten the list in place.
 */
export interface Candidates {
  readonly ids: Int32Array;
  readonly weights: Float64Array;
  count: number;
}

/** Room for a whole vocabulary. */
export function createCandidates(vocabularySize: number): Candidates {
  return { ids: new Int32Array(vocabularySize), weights: new Float64Array(vocabularySize), count: 0 };
}

/**
 * Fills the candidates with softmax weights: `exp((logit - largest) / temperature)`, as far as not below
 * `threshold` (a logit). Tokens whose weight vanishes are left out.
 */
export function fillCandidates(
  candidates: Candidates,
  logits: Float32Array,
  largest: number,
  temperature: number,
  threshold: number,
): void {
  const { ids, weights } = candidates;
  let count = 0;
  for (let id = 0; id < logits.length; id++) {
    if (logits[id] < threshold) continue;
    const weight = Math.exp((logits[id] - largest) / temperature);
    if (weight === 0) continue;
    ids[count] = id;
    weights[count++] = weight;
  }
  candidates.count = count;
}

/** Keeps what the predicate accepts, in order. */
export function keepCandidates(
  candidates: Candidates,
  accepts: (weight: number, id: number) => boolean,
): void {
  const { ids, weights } = candidates;
  let kept = 0;
  for (let i = 0; i < candidates.count; i++) {
    if (!accepts(weights[i], ids[i])) continue;
    ids[kept] = ids[i];
    weights[kept++] = weights[i];
  }
  candidates.count = kept;
}

/** The sum of the weights. */
export function totalWeight(candidates: Candidates): number {
  let total = 0;
  for (let i = 0; i < candidates.count; i++) total += candidates.weights[i];
  return total;
}

/** The token at the point `uniform` (in [0, 1)) of the cumulative distribution. */
export function drawCandidate(candidates: Candidates, uniform: number): number {
  let left = uniform * totalWeight(candidates);
  const last = candidates.count - 1;
  for (let i = 0; i < last; i++) {
    left -= candidates.weights[i];
    if (left < 0) return candidates.ids[i];
  }
  return candidates.ids[last];
}
