import type { LayerSensitivity, SensitivityPart } from "./options.ts";
import type { WeightTensor } from "./tensors.ts";

/** Means over parts by their tokens, with their standard errors. */
export function summarizeParts(
  tensors: readonly WeightTensor[],
  parts: readonly SensitivityPart[],
  gains?: readonly number[],
): LayerSensitivity[] {
  const tokens = parts.reduce((sum, part) => sum + part.tokens, 0);
  return tensors.map(({ name, rows, columns }, t) => {
    const mean = parts.reduce((sum, part) => sum + part.tokens * part.values[t], 0) / tokens;
    const spread = parts.reduce((sum, part) => sum + (part.tokens * (part.values[t] - mean)) ** 2, 0);
    const standardError =
      parts.length > 1 ? Math.sqrt((spread * parts.length) / (parts.length - 1)) / tokens : 0;
    const sensitivity = Math.max(0, mean);
    return {
      ...{ name, weights: rows * columns, sensitivity, standardError },
      ...(gains && { calibrationGain: gains[t] }),
    };
  });
}
