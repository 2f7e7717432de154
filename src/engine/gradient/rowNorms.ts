import type { Backend } from "../../backends/backend.ts";
import type { LinearSpec } from "../../models/decoder.ts";
import { loadValues, transpose } from "./loadPart.ts";
import { product } from "./tape.ts";

/**
 * Squared norms of the rows of dW = dOut^T . input, without dW: row i is dOut_i^T (input . input^T) dOut_i, a product
 * as wide as the sequence is long ("ghost norms", Li et al., arXiv:2110.05679).
 *
 * @param input [tokens, columns]
 * @param dOut [tokens, rows]
 */
export async function rowGradientNorms(
  backend: Backend,
  input: Float32Array,
  dOut: Float32Array,
  { rows, columns }: Pick<LinearSpec, "rows" | "columns">,
): Promise<Float64Array> {
  const tokens = input.length / columns;
  const inputs = await loadValues(backend, input, tokens, columns);
  const products = await product(backend, input, tokens, inputs);
  backend.freeLinear(inputs);
  const gram = await loadValues(backend, products, tokens, tokens);
  const turned = transpose(dOut, tokens, rows);
  const pulled = await product(backend, turned, rows, gram);
  backend.freeLinear(gram);
  const squares = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let i = row * tokens; i < (row + 1) * tokens; i++) sum += turned[i] * pulled[i];
    squares[row] = Math.max(0, sum);
  }
  return squares;
}
