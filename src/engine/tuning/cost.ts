import type { DecoderSpec } from "../../models/decoder.ts";
import { linearSpecs } from "../weights.ts";
import { MEASURE_EVERY } from "./tune.ts";

/** What everything but products takes, beside them: measured on two and on sixteen cores. */
const OVERHEAD = 1.4;

/** Multiplications that tuning takes: the float model forth, the quantized one forth twice and back once. */
export function tuneMultiplications(
  spec: DecoderSpec,
  steps: number,
  tokens: number,
  heldOutTokens: number,
): number {
  const layers = linearSpecs(spec).reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  const head = spec.vocabularySize * spec.hiddenSize;
  const measurements = 1 + Math.ceil(steps / MEASURE_EVERY);
  const learning = steps * tokens * (4 * layers + 3 * head);
  return OVERHEAD * (learning + heldOutTokens * (layers + measurements * (layers + 2 * head)));
}
