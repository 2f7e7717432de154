import type { Backend } from "../../backends/backend.ts";
import type { LinearHandle } from "../../backends/operation.ts";
import { loadValues, product, transpose } from "./product.ts";

/**
 * Squared norms of the rows of dW = dOut^T . input, without dW: row i is dOut_i^T (input . input^T) dOut_i, a product
 * as wide as the sequence is long ("ghost norms", Li et al., arXiv:2110.05679). Weights that share an input, one after
 * another, share input . input^T.
 */
export class RowNorms {
  readonly #backend: Backend;
  #input: Float32Array | undefined;
  #gram: LinearHandle | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /**
   * @param input [tokens, columns]
   * @param dOut [tokens, rows]
   */
  async squares(input: Float32Array, dOut: Float32Array, columns: number): Promise<Float64Array> {
    const tokens = input.length / columns;
    const rows = dOut.length / tokens;
    const gram = await this.#gramOf(input, tokens, columns);
    const turned = transpose(dOut, tokens, rows);
    const pulled = await product(this.#backend, turned, rows, gram);
    const squares = new Float64Array(rows);
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let i = row * tokens; i < (row + 1) * tokens; i++) sum += turned[i] * pulled[i];
      squares[row] = Math.max(0, sum);
    }
    return squares;
  }

  free(): void {
    if (this.#gram) this.#backend.freeLinear(this.#gram);
    this.#gram = undefined;
    this.#input = undefined;
  }

  /** input . input^T as a weight. */
  async #gramOf(input: Float32Array, tokens: number, columns: number): Promise<LinearHandle> {
    if (this.#gram && this.#input === input) return this.#gram;
    this.free();
    const inputs = await loadValues(this.#backend, input, tokens, columns);
    const products = await product(this.#backend, input, tokens, inputs);
    this.#backend.freeLinear(inputs);
    this.#gram = await loadValues(this.#backend, products, tokens, tokens);
    this.#input = input;
    return this.#gram;
  }
}
