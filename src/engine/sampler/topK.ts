/** Blocks of the first look for each token that is kept: enough that few tokens pass it. */
const BLOCKS = 4;
/** Fewest logits of a block for which that look pays. */
const FEWEST = 8;

/**
 * The k-th largest logit: top-k keeps everything from there on, ties included, as transformers' and vLLM's
 * do. -Infinity when there are no more than k. `scratch` is overwritten. O(n): where k is small, the k-th largest of the
 * maxima of blocks is a lower bound, and only what reaches it is looked at closely.
 */
export function topKThreshold(logits: Float32Array, k: number, scratch: Float32Array): number {
  if (k >= logits.length) return -Infinity;
  if (logits.length < BLOCKS * FEWEST * k) {
    scratch.set(logits);
    return kthLargest(scratch, logits.length, k);
  }
  const size = Math.floor(logits.length / (BLOCKS * k));
  let count = 0;
  for (let start = 0; start < logits.length; start += size) {
    const end = Math.min(start + size, logits.length);
    let largest = logits[start];
    for (let i = start + 1; i < end; i++) if (logits[i] > largest) largest = logits[i];
    scratch[count++] = largest;
  }
  const bound = kthLargest(scratch, count, k);
  count = 0;
  for (let i = 0; i < logits.length; i++) if (logits[i] >= bound) scratch[count++] = logits[i];
  return kthLargest(scratch, count, k);
}

/** Of the first `count` values, which are reordered: quickselect. */
function kthLargest(values: Float32Array, count: number, k: number): number {
  let low = 0;
  let high = count - 1;
  const target = k - 1;
  while (low < high) {
    const pivot = medianOfThree(values[low], values[(low + high) >> 1], values[high]);
    let i = low;
    let j = high;
    while (i <= j) {
      while (values[i] > pivot) i++;
      while (values[j] < pivot) j--;
      if (i > j) break;
      const swapped = values[i];
      values[i++] = values[j];
      values[j--] = swapped;
    }
    if (target <= j) high = j;
    else if (target >= i) low = i;
    else break;
  }
  return values[target];
}

function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
