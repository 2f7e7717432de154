import type { ActivationPrecision } from "../../backends/operation.ts";

/** The ways to multiply, see strategies.ts. */
export const strategyNames = ["padding", "padding-decoded", "split", "table", "bitwise", "float"] as const;
export type StrategyName = (typeof strategyNames)[number];

/** Larger products are decided as one of so many tokens. */
export const LARGEST_M = 2048;

/** The product that a policy is asked about: x [m, k] by the transpose of weights [n, k]. */
export interface ProductShape {
  readonly n: number;
  readonly k: number;
  /** Of the weights, e.g. `nuq-4`. */
  readonly scheme: string;
  readonly activations: ActivationPrecision;
  readonly m: number;
}

/** Says which strategy multiplies a shape; undefined where it does not know. Called when a step is recorded. */
export type LinearPolicy = (shape: ProductShape) => StrategyName | undefined;
