import type { ChannelSelection, Linear } from "../../backends/operation.ts";
import { slotPart } from "../../backends/slot.ts";
import type { LoweringContext } from "../../backends/wasm/backend.ts";
import { type FloatArgument, float, type Instruction } from "../../backends/wasm/instruction.ts";
import * as code from "../../backends/wasm/opcodes.ts";
import type { PackedResidual } from "./load.ts";

/** Channels whose products are summed as integers; select.as.ts and rows.as.ts count on it. */
const BLOCK = 128;
/** Most bytes of rows that are read from a file at a time, unless one token needs more. */
const STAGING_BYTES = 1 << 19;

export interface LoweredCompensation {
  /** Chooses the channels; what comes next need not wait for it unless it is `fetch`. */
  readonly select: Instruction;
  /** Reads rows that need no output yet, beside the products. */
  readonly fetch: readonly Instruction[];
  /** Adds to the outputs of the products. */
  readonly add: readonly Instruction[];
}

/** The instructions of a compensated linear operation beside its products. */
export function lowerCompensation(
  {
    input,
    rows: tokens,
    compensation,
  }: Pick<Linear, "input" | "rows"> & Required<Pick<Linear, "compensation">>,
  { scratch }: LoweringContext,
): LoweredCompensation {
  const { channels, selection, outputs } = compensation!;
  const residual = compensation!.residual as PackedResidual;
  const { columns, stride, bits, store } = residual;
  const even = Math.ceil(channels / 2) * 2;
  const blocks = Math.ceil(channels / BLOCK);
  const list = scratch.shared("channels", tokens * even * 4);
  const values = scratch.shared("channel values", tokens * even * 2);
  const scales = scratch.shared("channel scales", tokens * 4);
  const sums = scratch.shared("channel sums", tokens * blocks * 4);
  const keys = scratch.perThread(Math.ceil(columns / 4) * 16);
  const select = {
    code: code.SELECT_CHANNELS,
    args: [
      ...[input.place, tokens, columns, channels, ...selectionArgs(selection), ...keys],
      ...[list, values, scales, sums],
    ],
  };
  const group = store.kind === "file" ? Math.max(1, Math.floor(STAGING_BYTES / (even * stride))) : tokens;
  const staging =
    store.kind === "file"
      ? scratch.shared("rows", Math.min(group, tokens) * even * stride)
      : store.data.place;
  const part = (region: { resolve: () => number }, bytes: number) => ({
    resolve: () => region.resolve() + bytes,
  });

  const fetchOf = (first: number, count: number): Instruction[] => {
    if (store.kind === "memory") return [];
    const position = [store.position % 2 ** 32, Math.floor(store.position / 2 ** 32)];
    const args = [part(list, first * even * 4), count * even, store.descriptor, ...position, stride, staging];
    return [{ code: code.FETCH_RESIDUAL, args }];
  };
  const addOf = (first: number, count: number): Instruction[] =>
    outputs.map((output, i) => {
      const size = residual.rows[i];
      const { offset, scales: weightScales } = residual.parts[i];
      const base = typeof staging === "number" ? staging + offset : part(staging, offset);
      return {
        code: code.ADD_RESIDUAL,
        args: [
          ...[input.place + first * columns * 4, columns, part(list, first * even * 4)],
          ...[part(values, first * even * 2), part(scales, first * 4), part(sums, first * blocks * 4)],
          ...[channels, base, stride, store.kind === "file" ? 1 : 0, bits],
          ...[slotPart(output, first * size * 4, count * size * 4).place, count, size, weightScales.place],
        ],
        // Each writes an output of its own.
        independent: i < outputs.length - 1,
      };
    });

  const add: Instruction[] = [];
  for (let first = 0; first < tokens; first += group) {
    const count = Math.min(group, tokens - first);
    if (first > 0) add.push(...fetchOf(first, count));
    add.push(...addOf(first, count));
  }
  return { select, fetch: fetchOf(0, Math.min(group, tokens)), add };
}

/** Mode and its two numbers, as select.as.ts has them. */
function selectionArgs(
  selection: ChannelSelection,
): [number, number | FloatArgument, number | FloatArgument] {
  switch (selection.by) {
    case "magnitude":
      return [0, 0, 0];
    case "buckets":
      return [1, float(selection.largest), float(selection.usual)];
    case "energy":
      return [2, selection.energies.place, 0];
    case "random":
      return [3, selection.seed, 0];
  }
}
