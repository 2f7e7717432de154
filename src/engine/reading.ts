import type { ActivationPrecision } from "../backends/operation.ts";
import { LAYER_KINDS } from "../compensation/groups.ts";
import type { CompensationSettings } from "../compensation/settings.ts";

/** How a step reads a model. Readings share weights and cache; each is recorded as programs of its own. */
export interface Reading {
  /** How products with quantized weights read activations; the output head reads no fewer than 8 bits. */
  readonly activations: ActivationPrecision;
  /** What the residual adds to the products of quantized layers; nothing when absent. */
  readonly compensation?: CompensationSettings;
  /** How many of the layers are run, from the first on, before the head; all when absent. An experiment for drafts. */
  readonly layers?: number;
}

/** The same for readings that are the same. */
export function readingKey({ activations, compensation, layers }: Reading): string {
  const settings = compensation && [
    compensation.select,
    compensation.readers,
    ...LAYER_KINDS.map((kind) => compensation.channels[kind]),
  ];
  return [activations, layers, ...(settings ?? [])].join(" ");
}
