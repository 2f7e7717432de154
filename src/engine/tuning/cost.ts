import type { DecoderSpec } from "../../models/decoder.ts";
import { linearSpecs } from "../weights.ts";
import { MEASURE_EVERY } from "./tune.ts";

/** What one value that enters or leaves a linear layer takes on the way back, beside products: on one thread. */
const SECONDS_PER_VALUE = 1.5e-8;

/**
 * Seconds that tuning takes when products do so many multiplications a second: the float model forth, the quantized one
 * forth twice and back once.
 */
export function tuneSeconds(
  spec: DecoderSpec,
  steps: number,
  tokens: number,
  heldOutTokens: number,
  multiplicationsPerSecond: number,
): number {
  const linears = linearSpecs(spec);
  const layers = linears.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  const head = spec.vocabularySize * spec.hiddenSize;
  const measurements = 1 + Math.ceil(steps / MEASURE_EVERY);
  const learning = steps * tokens * (4 * layers + 3 * head);
  const measuring = heldOutTokens * (layers + measurements * (layers + 2 * head));
  const values = linears.reduce((sum, { rows, columns }) => sum + rows + columns, spec.vocabularySize);
  return (learning + measuring) / multiplicationsPerSecond + SECONDS_PER_VALUE * values * steps * tokens;
}
