import type { Backend } from "../../backends/backend.ts";
import type { LinearHandle, Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";

/** An input of linear weights as a step had it. */
export interface SeenInput {
  /** The weights that multiply it. */
  readonly weights: readonly LinearHandle[];
  /** [tokens, columns] */
  readonly values: Float32Array;
  /** The same, the channels that compensation takes zero, where that was asked for. */
  readonly left: Float32Array | undefined;
}

interface Copy {
  readonly weights: readonly LinearHandle[];
  readonly columns: number;
  readonly values: Slot;
  readonly left: Slot | undefined;
}

/** Copies of the inputs of linear weights, made while steps run. */
export class InputCopies {
  readonly #backend: Backend;
  readonly #rows: number;
  readonly #taken: ((weights: LinearHandle) => number) | undefined;
  /** By the first weights, in the order of use. */
  readonly #copies = new Map<LinearHandle, Copy>();

  /**
   * @param rows most tokens of a step.
   * @param taken channels that compensation takes of the input of such weights, the largest of each token.
   */
  constructor(backend: Backend, rows: number, taken?: (weights: LinearHandle) => number) {
    this.#backend = backend;
    this.#rows = rows;
    this.#taken = taken;
  }

  /** A step's operations, each input copied before it is multiplied. */
  change(operations: Operation[]): Operation[] {
    return operations.flatMap((operation): Operation[] => {
      if (operation.op !== "linear") return [operation];
      const { input, rows, weights } = operation;
      const [first] = weights;
      const { columns: size, values, left } = this.#copyOf(first, weights);
      const copy = { op: "suppress", input, out: values, rows, size, channels: 0 } as const;
      if (!left) return [copy, operation];
      return [copy, { ...copy, out: left, channels: this.#taken!(first) }, operation];
    });
  }

  /** Shows the inputs of the step just run, of `rows` tokens. */
  async show(rows: number, see: (input: SeenInput) => void): Promise<void> {
    for (const { weights, columns, values, left } of this.#copies.values()) {
      const read = (slot: Slot) => this.#backend.readFloats(slot, rows * columns);
      see({ weights, values: await read(values), left: left && (await read(left)) });
    }
  }

  free(): void {
    for (const { values, left } of this.#copies.values()) {
      this.#backend.free(values);
      if (left) this.#backend.free(left);
    }
  }

  #copyOf(first: LinearHandle, weights: readonly LinearHandle[]): Copy {
    const known = this.#copies.get(first);
    if (known) return known;
    const { columns } = first;
    const reserve = () => this.#backend.reserve(this.#rows * columns * 4);
    const copy = { weights, columns, values: reserve(), left: this.#taken && reserve() };
    this.#copies.set(first, copy);
    return copy;
  }
}
