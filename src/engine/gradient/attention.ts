import type { Backend } from "../../backends/backend.ts";
import type { AttentionShape } from "../../ops/attention/reference.ts";
import { loadValues, product, transpose } from "./product.ts";

/** Queries [rows, heads * headSize], keys and values [rows, kvHeads * headSize], of one sequence from its start. */
export interface AttentionInputs {
  readonly q: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** Queries at a time: scores of a megabyte or so, and little work above the diagonal. */
const BLOCK_ROWS = 128;

/**
 * From `dOut` [rows, heads * headSize], the gradients of the inputs. Products run on the backend: the queries of all
 * heads that share keys, some positions at a time, with all keys that they may see.
 */
export async function attentionGradient(
  backend: Backend,
  { q, keys, values }: AttentionInputs,
  dOut: Float32Array,
  shape: Omit<AttentionShape, "capacity">,
): Promise<AttentionInputs> {
  const { rows, heads, kvHeads, headSize, window } = shape;
  const gradients = {
    q: new Float32Array(q.length),
    keys: new Float32Array(keys.length),
    values: new Float32Array(values.length),
  };
  const shared = heads / kvHeads;
  for (let kvHead = 0; kvHead < kvHeads; kvHead++) {
    for (let row = 0; row < rows; row += BLOCK_ROWS) {
      const end = Math.min(rows, row + BLOCK_ROWS);
      const first = window ? Math.max(0, row - window + 1) : 0;
      const queries = { from: row, to: end, heads, head: kvHead * shared, count: shared, headSize };
      const seen = { from: first, to: end, heads: kvHeads, head: kvHead, count: 1, headSize };
      const block: Block = {
        ...{ q: gather(q, queries), dOut: gather(dOut, queries) },
        ...{ keys: gather(keys, seen), values: gather(values, seen), row, first },
        count: end - row,
      };
      const found = await blockGradient(backend, block, shape);
      scatter(gradients.q, queries, found.q);
      scatter(gradients.keys, seen, found.keys);
      scatter(gradients.values, seen, found.values);
    }
  }
  return gradients;
}

/** Queries of some heads [heads * count, headSize], from position `row` on, and keys from position `first` on. */
interface Block extends AttentionInputs {
  readonly dOut: Float32Array;
  readonly row: number;
  readonly count: number;
  readonly first: number;
}

async function blockGradient(
  backend: Backend,
  block: Block,
  shape: Omit<AttentionShape, "capacity">,
): Promise<AttentionInputs> {
  const { headSize } = shape;
  const queries = block.q.length / headSize;
  const keys = block.keys.length / headSize;
  const times = async (input: Float32Array, rows: number, weight: Float32Array, weightRows: number) => {
    const handle = await loadValues(backend, weight, weightRows, weight.length / weightRows);
    const result = await product(backend, input, rows, handle);
    backend.freeLinear(handle);
    return result;
  };
  const weights = await times(block.q, queries, block.keys, keys);
  const slopes = await times(block.dOut, queries, block.values, keys);
  softmaxGradient(weights, slopes, block, keys, shape);
  const turned = (values: Float32Array) => transpose(values, queries, values.length / queries);
  return {
    q: await times(slopes, queries, transpose(block.keys, keys, headSize), headSize),
    keys: await times(turned(slopes), keys, turned(block.q), headSize),
    values: await times(turned(weights), keys, turned(block.dOut), headSize),
  };
}

/** Replaces products q . k by attention's weights, and those of dOut . v by the gradient of q . k. */
function softmaxGradient(
  weights: Float32Array,
  slopes: Float32Array,
  { row, count, first }: Block,
  keys: number,
  { scale, window, softcap }: Omit<AttentionShape, "capacity">,
): void {
  /** Of the scores by q . k. */
  const curve = new Float64Array(keys);
  for (let at = 0, i = 0; at < weights.length; at += keys, i++) {
    const position = row + (i % count);
    const from = window ? Math.max(0, position - window + 1 - first) : 0;
    const to = position - first + 1;
    let largest = -Infinity;
    for (let j = from; j < to; j++) {
      let score = scale * weights[at + j];
      curve[j] = scale;
      if (softcap) {
        const t = Math.tanh(score / softcap);
        score = softcap * t;
        curve[j] = scale * (1 - t * t);
      }
      weights[at + j] = score;
      if (score > largest) largest = score;
    }
    let total = 0;
    // The mean of dOut . v under the weights: softmax's gradient is the difference from it.
    let mean = 0;
    for (let j = from; j < to; j++) {
      const weight = Math.exp(weights[at + j] - largest);
      weights[at + j] = weight;
      total += weight;
      mean += weight * slopes[at + j];
    }
    mean /= total;
    for (let j = from; j < to; j++) {
      weights[at + j] /= total;
      slopes[at + j] = curve[j] * weights[at + j] * (slopes[at + j] - mean);
    }
    for (const values of [weights, slopes]) values.fill(0, at, at + from).fill(0, at + to, at + keys);
  }
}

/** Some heads' columns of some positions. */
interface Part {
  readonly from: number;
  readonly to: number;
  /** Of a position. */
  readonly heads: number;
  readonly head: number;
  readonly count: number;
  readonly headSize: number;
}

/** [positions, heads * headSize] to [count * (to - from), headSize]. */
function gather(values: Float32Array, part: Part): Float32Array {
  const { from, to, count, headSize } = part;
  const result = new Float32Array(count * (to - from) * headSize);
  eachRow(part, (source, target) => result.set(values.subarray(source, source + headSize), target));
  return result;
}

/** Adds where {@link gather} took from. */
function scatter(target: Float32Array, part: Part, values: Float32Array): void {
  eachRow(part, (to, from) => {
    for (let i = 0; i < part.headSize; i++) target[to + i] += values[from + i];
  });
}

function eachRow(
  { from, to, heads, head, count, headSize }: Part,
  visit: (whole: number, gathered: number) => void,
): void {
  for (let h = 0, at = 0; h < count; h++) {
    for (let position = from; position < to; position++, at += headSize) {
      visit((position * heads + head + h) * headSize, at);
    }
  }
}
