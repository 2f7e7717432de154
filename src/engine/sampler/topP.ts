import { type Candidates, keepCandidates, totalWeight } from "./candidates.ts";

/**
 * Nucleus sampling (Holtzman et al., arXiv:1904.09751): keeps the fewest most likely tokens whose
 * probabilities sum to at least `topP`, the lower id first among equals. transformers and vLLM cut the same
 * set (they leave the order among equals open). Expected O(n): a weighted quickselect of `pool`, which is overwritten,
 * finds where to cut.
 */
export function applyTopP(candidates: Candidates, topP: number, pool: Candidates): void {
  if (topP >= 1 || candidates.count < 2) return;
  const total = totalWeight(candidates);
  // All the tokens lighter than this weigh less than 1 - topP together, so none of them is needed.
  const negligible = ((1 - topP) * total) / candidates.count;
  let count = 0;
  for (let i = 0; i < candidates.count; i++) {
    if (candidates.weights[i] < negligible) continue;
    pool.ids[count] = candidates.ids[i];
    pool.weights[count++] = candidates.weights[i];
  }
  pool.count = count;
  const [lastWeight, lastId] = lastOfNucleus(pool, topP * total);
  keepCandidates(candidates, (weight, id) => weight > lastWeight || (weight === lastWeight && id <= lastId));
}

/** The token with which the cumulative weight, heaviest first, reaches `mass`. Reorders the pool. */
function lastOfNucleus({ ids, weights, count }: Candidates, mass: number): [weight: number, id: number] {
  let low = 0;
  let high = count;
  let needed = mass;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    swap(ids, weights, middle, high - 1);
    const pivotWeight = weights[high - 1];
    const pivotId = ids[high - 1];
    let border = low;
    let heavier = 0;
    for (let i = low; i < high - 1; i++) {
      if (weights[i] < pivotWeight || (weights[i] === pivotWeight && ids[i] > pivotId)) continue;
      heavier += weights[i];
      swap(ids, weights, i, border++);
    }
    swap(ids, weights, border, high - 1);
    if (heavier >= needed) high = border;
    else if (heavier + pivotWeight >= needed || border === high - 1) return [pivotWeight, pivotId];
    else {
      needed -= heavier + pivotWeight;
      low = border + 1;
    }
  }
  return [weights[low], ids[low]];
}

function swap(ids: Int32Array, weights: Float64Array, i: number, j: number): void {
  const id = ids[i];
  ids[i] = ids[j];
  ids[j] = id;
  const weight = weights[i];
  weights[i] = weights[j];
  weights[j] = weight;
}
