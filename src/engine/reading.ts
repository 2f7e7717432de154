import type { ActivationPrecision } from "../backends/operation.ts";

/** How a step reads a model. Readings share weights and cache; each is recorded as programs of its own. */
export interface Reading {
  /** How products with quantized weights read activations. */
  readonly activations: ActivationPrecision;
}

/** The same for readings that are the same. */
export function readingKey({ activations }: Reading): string {
  return activations;
}
