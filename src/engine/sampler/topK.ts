/**
 * The k-th largest logit: top-k keeps everything from there on, ties included, as transformers' and vLLM's
 * do. -Infinity when there are no more than k. Quickselect on `scratch`, which is overwritten: O(n).
 */
export function topKThreshold(logits: Float32Array, k: number, scratch: Float32Array): number {
  if (k >= logits.length) return -Infinity;
  scratch.set(logits);
  let low = 0;
  let high = logits.length - 1;
  const target = k - 1;
  while (low < high) {
    const pivot = medianOfThree(scratch[low], scratch[(low + high) >> 1], scratch[high]);
    let i = low;
    let j = high;
    while (i <= j) {
      while (scratch[i] > pivot) i++;
      while (scratch[j] < pivot) j--;
      if (i > j) break;
      const swapped = scratch[i];
      scratch[i++] = scratch[j];
      scratch[j--] = swapped;
    }
    if (target <= j) high = j;
    else if (target >= i) low = i;
    else break;
  }
  return scratch[target];
}

function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
