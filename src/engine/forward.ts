import type { Compensation, Operation } from "../backends/operation.ts";
import { type Slot, slotPart } from "../backends/slot.ts";
import type {
  AttentionSpec,
  DecoderSpec,
  LayerSpec,
  LinearSpec,
  MlpSpec,
  NormSpec,
} from "../models/decoder.ts";
import type { StepBuffers } from "./buffers.ts";
import type { KeyValueCache } from "./kvCache.ts";
import type { Reading } from "./reading.ts";
import type { LoadedWeights } from "./weights.ts";

/** Whose logits a step computes: every token's, the last one's, nobody's, or those of the last so many. */
export type LogitsWanted = "all" | "last" | "none" | number;

/** Rows of logits that a step over `rows` tokens gives. */
export function logitRowsOf(wanted: LogitsWanted, rows: number): number {
  if (typeof wanted === "number") return wanted;
  return wanted === "all" ? rows : wanted === "last" ? 1 : 0;
}

export interface ForwardPlan {
  readonly spec: DecoderSpec;
  readonly weights: LoadedWeights;
  readonly cache: KeyValueCache;
  readonly buffers: StepBuffers;
}

/** The operations of one step over `rows` tokens in a reading of the model; logits go to `logits`. */
export function forward(
  plan: ForwardPlan,
  reading: Reading,
  rows: number,
  wanted: LogitsWanted,
  logits: Slot | undefined,
): Operation[] {
  const { spec, weights, buffers } = plan;
  const step = new StepBuilder(plan, reading, rows);
  step.emit({
    op: "embed",
    table: weights.embedding,
    ids: buffers.ids,
    out: buffers.hidden,
    rows,
    scale: spec.embeddingScale,
  });
  spec.layers.slice(0, reading.layers).forEach((layer, i) => {
    step.layer(layer, i);
  });
  const logitRows = logitRowsOf(wanted, rows);
  if (logitRows > 0 && logits) step.head(logitRows, logits);
  return step.operations;
}

class StepBuilder {
  readonly operations: Operation[] = [];
  readonly #plan: ForwardPlan;
  readonly #reading: Reading;
  readonly #rows: number;
  /** A sublayer's output that the residual stream still lacks; the next norm adds it on its way. */
  #pending: Slot | undefined;

  constructor(plan: ForwardPlan, reading: Reading, rows: number) {
    this.#plan = plan;
    this.#reading = reading;
    this.#rows = rows;
  }

  emit(operation: Operation): void {
    this.operations.push(operation);
  }

  layer({ attention, mlp, norms }: LayerSpec, index: number): void {
    const { delta } = this.#plan.buffers;
    this.#attention(attention, index, this.#enter(norms.beforeAttention));
    this.#leave(delta, norms.afterAttention);
    this.#mlp(mlp, this.#enter(norms.beforeMlp));
    this.#leave(delta, norms.afterMlp);
  }

  head(rows: number, logits: Slot): void {
    const { activations } = this.#reading;
    const { spec, weights } = this.#plan;
    const normed = this.#enter(spec.finalNorm);
    const width = spec.hiddenSize * 4;
    this.emit({
      op: "linear",
      input: slotPart(normed, (this.#rows - rows) * width, rows * width),
      weights: [weights.head],
      biases: [undefined],
      outputs: [logits],
      rows,
      // One layer of many, and the one whose errors count in full: 8 bits raise the accepted share of drafts by a quarter.
      activations: activations === "int4" ? "int8" : activations,
    });
    if (spec.logitSoftcap) {
      const { vocabularySize: size, logitSoftcap: limit } = spec;
      this.emit({ op: "softcap", input: logits, rows, size, limit });
    }
  }

  /** The input of a sublayer: the residual stream, complete, and normed when a norm is given. */
  #enter(norm: NormSpec | undefined): Slot {
    const { hidden, normed } = this.#plan.buffers;
    const add = this.#pending;
    this.#pending = undefined;
    if (norm) {
      this.#norm(norm, hidden, normed, this.#rows, add);
      return normed;
    }
    if (add) this.emit({ op: "add", input: hidden, add, rows: this.#rows, size: this.#plan.spec.hiddenSize });
    return hidden;
  }

  #leave(delta: Slot, norm: NormSpec | undefined): void {
    if (norm) this.#norm(norm, delta, delta, this.#rows);
    this.#pending = delta;
  }

  #norm(norm: NormSpec, input: Slot, out: Slot, rows: number, add?: Slot): void {
    const weight = this.#plan.weights.norms.get(norm)!;
    const { size } = norm;
    this.emit({ op: "rmsNorm", input, add, weight, out, rows, size, epsilon: this.#plan.spec.normEpsilon });
  }

  /**
   * Multiplies weights that share an input; the outputs lie in `area`, one after another. Fused weights are multiplied
   * as one matrix in a step of one token, whose outputs then lie as their rows do; more tokens' outputs do not.
   */
  #linear(input: Slot, specs: readonly LinearSpec[], area: Slot): Slot[] {
    const { linears, fused } = this.#plan.weights;
    const products = this.#rows > 1 ? specs.map((spec) => [spec]) : fusedSets(specs, fused);
    const loaded = products.map((parts) => (parts.length > 1 ? fused.get(parts[0]) : linears.get(parts[0]))!);
    const places = new Map<LinearSpec, Slot>();
    let at = 0;
    const outputs = products.map((parts) => {
      const start = at;
      for (const part of parts) {
        const byteLength = this.#rows * part.rows * 4;
        places.set(part, slotPart(area, at, byteLength));
        at += byteLength;
      }
      return slotPart(area, start, at - start);
    });
    this.emit({
      op: "linear",
      input,
      weights: loaded.map(({ handle }) => handle),
      biases: loaded.map(({ bias }) => bias),
      outputs,
      rows: this.#rows,
      activations: this.#reading.activations,
      compensation: this.#compensation(specs, places),
    });
    return specs.map((spec) => places.get(spec)!);
  }

  #compensation(
    specs: readonly LinearSpec[],
    places: ReadonlyMap<LinearSpec, Slot>,
  ): Compensation | undefined {
    const settings = this.#reading.compensation;
    const { residuals } = this.#plan.weights;
    const residual = settings && residuals?.of(specs);
    return residual && residuals!.compensation(residual, settings, (member) => places.get(member)!);
  }

  #attention(spec: AttentionSpec, index: number, input: Slot): void {
    const { buffers } = this.#plan;
    const { qkv, attended, delta, positions, sequences } = buffers;
    const { heads, kvHeads, headSize, qNorm, kNorm } = spec;
    const rows = this.#rows;
    const [q, k, v] = this.#linear(input, [spec.q, spec.k, spec.v], qkv);
    if (qNorm) this.#norm(qNorm, q, q, (rows * heads * headSize) / qNorm.size);
    if (kNorm) this.#norm(kNorm, k, k, (rows * kvHeads * headSize) / kNorm.size);
    const shape = {
      cache: this.#plan.cache.layers[index],
      positions,
      sequences,
      rows,
      heads,
      kvHeads,
      headSize,
    };
    const rope = spec.rope === undefined ? undefined : buffers.ropes[spec.rope];
    const rotated = spec.rope === undefined ? 0 : this.#plan.spec.ropes[spec.rope].rotated;
    this.emit({ op: "ropeStore", q, k, v, rope, rotated, ...shape });
    const { scale, window, softcap } = spec;
    this.emit({ op: "attention", q, out: attended, scale, window, softcap, ...shape });
    this.#linear(attended, [spec.o], delta);
  }

  #mlp(spec: MlpSpec, input: Slot): void {
    const { gateUp, delta } = this.#plan.buffers;
    const [gate, up] = this.#linear(input, [spec.gate, spec.up], gateUp);
    const { activation } = spec;
    this.emit({ op: "gate", gate, up, out: gate, rows: this.#rows, size: spec.gate.rows, activation });
    this.#linear(gate, [spec.down], delta);
  }
}

/** Weights as they are multiplied: those that are fused with others of them, in the order of their rows, and the rest alone. */
function fusedSets(specs: readonly LinearSpec[], fused: LoadedWeights["fused"]): (readonly LinearSpec[])[] {
  const sets = specs.flatMap((spec) => (fused.has(spec) ? [fused.get(spec)!.parts] : []));
  const alone = specs.filter((spec) => !sets.some((parts) => parts.includes(spec)));
  return [...sets, ...alone.map((spec) => [spec])];
}
