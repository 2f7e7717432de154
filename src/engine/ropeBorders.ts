import type { DecoderSpec } from "../models/decoder.ts";

/** Whether a sequence that has just reached this length must have its cached keys computed anew; see `RopeSpec.border`. */
export function crossesBorder({ ropes }: DecoderSpec, length: number): boolean {
  return ropes.some(({ border }) => border !== undefined && length === border + 1);
}

/** How many tokens a sequence may grow by until it crosses a border. */
export function roomBeforeBorder({ ropes }: DecoderSpec, length: number): number {
  return Math.min(
    ...ropes.map(({ border }) => (border !== undefined && border >= length ? border - length + 1 : Infinity)),
  );
}
