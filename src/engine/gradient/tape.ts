/**
 * Reverse-mode differentiation of what the engine runs: operations are executed one by one, their inputs kept, and
 * walked back. It knows operations, not architectures: whatever `forward` builds has its gradient here.
 *
 * Products run on the backend; the rest, a small share of the work, is plain TypeScript.
 *
 * @module
 */
import type { Backend } from "../../backends/backend.ts";
import type { Attention, Linear, LinearHandle, Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import { gateGradient } from "../../ops/gate/gradient.ts";
import { rmsNormGradient } from "../../ops/rmsNorm/gradient.ts";
import { ropeGradient } from "../../ops/ropeStore/gradient.ts";
import { softcapGradient } from "../../ops/softcap/gradient.ts";
import { attentionGradient } from "./attention.ts";
import { product } from "./product.ts";

/** What a walk back finds besides the gradient of its input. */
export interface GradientObserver {
  /** A product's input [rows, columns] and the gradient of its output [rows, weight.rows]: dW = dOut^T . input. */
  linear?(weight: LinearHandle, input: Float32Array, dOut: Float32Array): Promise<void> | void;
  /** A product's output [rows, weight.rows], bias included, and its gradient; asks for {@link Tape.run} to keep outputs. */
  output?(weight: LinearHandle, output: Float32Array, dOut: Float32Array): Promise<void> | void;
  /** Gradient of a norm's weight [size], summed over the rows of the step. */
  norm?(weight: Slot, dWeight: Float32Array): void;
  /** Gradient of the table's rows [rows, columns] that the step's tokens looked up. */
  embed?(dRows: Float32Array): void;
}

/** An operation that ran, with the values of the slots that its gradient needs, in the order of {@link inputsOf}. */
interface Entry {
  readonly operation: Operation;
  readonly inputs: readonly Float32Array[];
  /** Of a product, where they are kept. */
  readonly outputs: readonly Float32Array[];
}

export class Tape {
  readonly #backend: Backend;
  readonly #transposed: ReadonlyMap<LinearHandle, LinearHandle>;
  readonly #entries: Entry[] = [];
  /** By place: the gradient of what a slot holds at this point of the walk. */
  readonly #gradients = new Map<number, Float32Array>();

  /** @param transposed of every weight that is multiplied with: its transpose as a weight of its own. */
  constructor(backend: Backend, transposed: ReadonlyMap<LinearHandle, LinearHandle>) {
    this.#backend = backend;
    this.#transposed = transposed;
  }

  /** Runs operations over one sequence from its start, and remembers them, with their products' outputs if asked. */
  async run(operations: readonly Operation[], keepOutputs = false): Promise<void> {
    for (const operation of operations) {
      const inputs = await this.#read(inputsOf(operation));
      await this.#execute(operation);
      const outputs = keepOutputs ? await this.#read(productsOf(operation)) : [];
      this.#entries.push({ operation, inputs, outputs });
    }
  }

  /**
   * Walks back from the gradient of `output`, whatever was run last, to that of `input` as it was at first.
   * Forgets what was run.
   */
  async backward(
    output: Slot,
    gradient: Float32Array,
    input: Slot,
    observer: GradientObserver = {},
  ): Promise<Float32Array> {
    this.#gradients.clear();
    this.#gradients.set(output.place, gradient.slice());
    for (const entry of this.#entries.splice(0).reverse()) await this.#back(entry, observer);
    return this.#gradients.get(input.place) ?? new Float32Array(gradient.length);
  }

  async #read(slots: readonly (readonly [Slot, number])[]): Promise<Float32Array[]> {
    const values: Float32Array[] = [];
    for (const [slot, count] of slots) values.push(await this.#backend.readFloats(slot, count));
    return values;
  }

  async #back({ operation: op, inputs, outputs }: Entry, observer: GradientObserver): Promise<void> {
    switch (op.op) {
      case "linear":
        return this.#backLinear(op, inputs[0], outputs, observer);
      case "rmsNorm": {
        const { rows, size, epsilon } = op;
        const [x, weight, added] = inputs;
        if (added) for (let i = 0; i < x.length; i++) x[i] += added[i];
        const dx = new Float32Array(x.length);
        const dWeight = observer.norm && new Float32Array(size);
        rmsNormGradient(x, weight, this.#take(op.out, x.length), dx, dWeight, rows, size, epsilon);
        if (dWeight) observer.norm?.(op.weight, dWeight);
        this.#add(op.input, dx);
        if (op.add) this.#add(op.add, this.#get(op.input).slice());
        return;
      }
      case "add":
        return this.#add(op.add, this.#get(op.input).slice());
      case "gate": {
        const dOut = this.#take(op.out, inputs[0].length);
        const [dGate, dUp] = inputs.map(({ length }) => new Float32Array(length));
        gateGradient(inputs[0], inputs[1], dOut, dGate, dUp, op.activation);
        this.#add(op.gate, dGate);
        return this.#add(op.up, dUp);
      }
      case "attention": {
        const [q, ...cached] = inputs;
        const [keys, values] = cached.map((heads) => positionsFirst(heads, op));
        const dOut = this.#take(op.out, q.length);
        const gradients = await attentionGradient(this.#backend, { q, keys, values }, dOut, op);
        this.#add(op.q, gradients.q);
        this.#add(op.cache.keys, gradients.keys);
        return this.#add(op.cache.values, gradients.values);
      }
      case "ropeStore": {
        const { rows, heads, kvHeads, headSize, rotated } = op;
        const dq = this.#take(op.q, rows * heads * headSize);
        const dk = this.#take(op.cache.keys, rows * kvHeads * headSize);
        if (op.rope) {
          ropeGradient(dq, inputs[0], rotated, rows, heads, headSize);
          ropeGradient(dk, inputs[0], rotated, rows, kvHeads, headSize);
        }
        this.#add(op.q, dq);
        this.#add(op.k, dk);
        return this.#add(op.v, this.#take(op.cache.values, dk.length));
      }
      case "softcap":
        return softcapGradient(inputs[0], this.#get(op.input), op.limit);
      case "embed": {
        const dRows = this.#take(op.out, op.rows * op.table.columns).map((value) => value * op.scale);
        return observer.embed?.(dRows);
      }
      case "gram":
        return;
    }
  }

  async #backLinear(
    op: Linear,
    x: Float32Array,
    outputs: readonly Float32Array[],
    observer: GradientObserver,
  ): Promise<void> {
    const { input, rows } = op;
    for (const [i, weight] of op.weights.entries()) {
      const dOut = this.#take(op.outputs[i], rows * weight.rows);
      await observer.linear?.(weight, x, dOut);
      if (outputs.length > 0) await observer.output?.(weight, outputs[i], dOut);
      this.#add(input, await product(this.#backend, dOut, rows, this.#transposed.get(weight)!));
    }
  }

  async #execute(operation: Operation): Promise<void> {
    const program = this.#backend.record([operation]);
    await this.#backend.run(program);
    program.free();
  }

  #get(slot: Slot): Float32Array {
    return this.#gradients.get(slot.place)!;
  }

  /** The gradient of an output, which nothing before it can see. */
  #take(slot: Slot, count: number): Float32Array {
    const gradient = this.#gradients.get(slot.place);
    this.#gradients.delete(slot.place);
    return gradient ?? new Float32Array(count);
  }

  /** Takes the array over. */
  #add(slot: Slot, gradient: Float32Array): void {
    const sum = this.#gradients.get(slot.place);
    if (sum) for (let i = 0; i < sum.length; i++) sum[i] += gradient[i];
    else this.#gradients.set(slot.place, gradient);
  }
}

/** Slots that an operation's gradient needs as they were before it ran, with their numbers of values. */
function inputsOf(op: Operation): (readonly [Slot, number])[] {
  switch (op.op) {
    case "linear":
      return [[op.input, op.rows * op.weights[0].columns]];
    case "rmsNorm": {
      const count = op.rows * op.size;
      return [[op.input, count], [op.weight, op.size], ...(op.add ? [[op.add, count] as const] : [])];
    }
    case "gate":
      return [
        [op.gate, op.rows * op.size],
        [op.up, op.rows * op.size],
      ];
    case "attention": {
      const { rows, heads, kvHeads, headSize, cache } = op;
      return [
        [op.q, rows * heads * headSize],
        [cache.keys, kvHeads * cache.capacity * headSize],
        [cache.values, kvHeads * cache.capacity * headSize],
      ];
    }
    case "ropeStore":
      return op.rope ? [[op.rope, op.rows * op.rotated]] : [];
    case "softcap":
      return [[op.input, op.rows * op.size]];
    default:
      return [];
  }
}

/** Keys or values [kvHeads, capacity, headSize] of a sequence as [rows, kvHeads, headSize]. */
function positionsFirst(
  cached: Float32Array,
  { rows, kvHeads, headSize, cache: { capacity } }: Attention,
): Float32Array {
  const result = new Float32Array(rows * kvHeads * headSize);
  for (let row = 0; row < rows; row++) {
    for (let head = 0; head < kvHeads; head++) {
      const at = (head * capacity + row) * headSize;
      result.set(cached.subarray(at, at + headSize), (row * kvHeads + head) * headSize);
    }
  }
  return result;
}

function productsOf(op: Operation): (readonly [Slot, number])[] {
  return op.op === "linear" ? op.outputs.map((slot, i) => [slot, op.rows * op.weights[i].rows] as const) : [];
}
