import type { Operation } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { CompensatedCalibration } from "./options.ts";

/** What `LayerPass.observe` may be told. */
export interface ObserveOptions {
  /** Replace the hidden states too. */
  readonly advance: boolean;
  readonly compensation?: CompensatedCalibration;
  /** By weight tensor: how much each token counts, float32 [tokens]; for those not named all count alike. */
  readonly tokenWeights?: ReadonlyMap<string, Float32Array>;
  readonly signal?: AbortSignal;
}

/** An input of linear layers, and sums over it. */
export interface WatchedInput {
  readonly columns: number;
  readonly sums: readonly WatchedSums[];
  /** The input without the channels that are compensated. */
  readonly suppressed?: { readonly out: Slot; readonly channels: number };
}

export interface WatchedSums {
  readonly weights: readonly string[];
  readonly sums: Slot;
  /** Over the suppressed input. */
  readonly left?: Slot;
  /** Of the tokens, and where those of a step go. */
  readonly tokenWeights?: { readonly values: Float32Array; readonly slot: Slot };
}

/** What adds a step to the sums of an input. */
export function gramsOf(
  { columns: size, sums, suppressed }: WatchedInput,
  input: Slot,
  rows: number,
): Operation[] {
  const all = sums.map(
    ({ sums, tokenWeights }) =>
      ({ op: "gram", input, weights: tokenWeights?.slot, sums, rows, size }) as const,
  );
  if (!suppressed) return all;
  const { out, channels } = suppressed;
  const left = sums.map(
    ({ left, tokenWeights }) =>
      ({ op: "gram", input: out, weights: tokenWeights?.slot, sums: left!, rows, size }) as const,
  );
  return [...all, { op: "suppress", input, out, rows, size, channels }, ...left];
}
