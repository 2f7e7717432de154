import { nuqLevels } from "./nuq.ts";
import type { Scheme } from "./scheme.ts";
import { uniformLevels } from "./uniform.ts";
import { vqCodebook } from "./vq.ts";

/** A scheme whose codes index a table: code c of `bits` bits stands for values [c * dimension, (c + 1) * dimension). */
export interface CodeTable {
  readonly bits: number;
  readonly dimension: number;
  readonly values: Float32Array;
}

/** The table of a scheme, undefined for schemes that have none (trellises, floats). */
export function codeTable(scheme: Scheme): CodeTable | undefined {
  const { family, bits } = scheme;
  if (family === "nuq") return { bits, dimension: 1, values: nuqLevels(bits) };
  if (family === "uniform") return { bits, dimension: 1, values: uniformLevels(bits) };
  if (family === "vq") return { bits: 2 * bits, dimension: 2, values: vqCodebook(bits) };
  return undefined;
}
