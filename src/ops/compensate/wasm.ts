import type { ChannelSelection, Linear } from "../../backends/operation.ts";
import { slotPart } from "../../backends/slot.ts";
import type { LoweringContext } from "../../backends/wasm/backend.ts";
import {
  type Deferred,
  type FloatArgument,
  float,
  type Instruction,
} from "../../backends/wasm/instruction.ts";
import * as code from "../../backends/wasm/opcodes.ts";
import type { PackedResidual } from "./load.ts";

/** Channels whose products are summed as integers; select.as.ts and rows.as.ts count on it. */
const BLOCK = 128;
/** Most bytes of rows that are read from a file at a time, unless one token needs more. */
const STAGING_BYTES = 1 << 19;
/** Bytes between two rows that may be read along with them, as places.as.ts has it. */
const GAP_BYTES = 4096;

export interface LoweredCompensation {
  /** Chooses the channels; what comes next need not wait for it unless it is `fetch`. */
  readonly select: readonly Instruction[];
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
  const { channels, selection, outputs, readers = scratch.threads } = compensation!;
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
    // One token's rows are placed by the thread that chose them.
    independent: tokens === 1,
  };
  const addOf = (first: number, count: number, rows: (member: number) => RowArguments): Instruction[] =>
    outputs.map((output, i) => {
      const size = residual.rows[i];
      return {
        code: code.ADD_RESIDUAL,
        args: [
          ...[input.place + first * columns * 4, columns, after(list, first * even * 4)],
          ...[after(values, first * even * 2), after(scales, first * 4), after(sums, first * blocks * 4)],
          ...[channels, ...rows(residual.parts[i].offset), bits],
          ...[slotPart(output, first * size * 4, count * size * 4).place, count, size],
          residual.parts[i].scales.place,
        ],
        // Each writes an output of its own.
        independent: i < outputs.length - 1,
      };
    });
  if (store.kind === "memory") {
    const rows = (offset: number): RowArguments => [store.data.place + offset, stride, list];
    return { select: [select], fetch: [], add: addOf(0, tokens, rows) };
  }

  const { descriptor, position } = store;
  const bytes = Math.min(STAGING_BYTES, tokens * even * (stride + GAP_BYTES));
  const capacity = Math.min(columns, Math.max(even, Math.floor(bytes / stride)));
  // So many tokens that all their rows fit.
  const group = capacity === columns ? tokens : Math.floor(capacity / even);
  const most = Math.min(group, tokens) * even;
  const places = scratch.shared("row places", most * 4);
  const reads = scratch.shared("row readings", 4 + Math.min(most, columns) * 12);
  const staging = scratch.shared("rows", capacity * stride);
  const table = scratch.shared("row table", columns * 4);
  const place = (first: number, count: number): Instruction => ({
    code: code.PLACE_ROWS,
    args: [
      ...[after(list, first * even * 4), count * even, columns, stride, table, staging, capacity],
      ...[places, reads, tokens === 1 ? 1 : 0],
    ],
  });
  const words = [position % 2 ** 32, Math.floor(position / 2 ** 32)];
  const fetch = {
    code: code.FETCH_RESIDUAL,
    args: [reads, descriptor, ...words, stride, readers],
  };
  const rows = (offset: number): RowArguments => [offset, 1, places];
  const groups = Array.from({ length: Math.ceil(tokens / group) }, (_, i) => {
    const count = Math.min(group, tokens - i * group);
    return { place: place(i * group, count), add: addOf(i * group, count, rows) };
  });
  return {
    select: [select, groups[0].place],
    fetch: [fetch],
    add: groups.flatMap((each, i) => (i === 0 ? each.add : [each.place, fetch, ...each.add])),
  };
}

/** Base, unit and offsets of the rows, as rows.as.ts has them. */
type RowArguments = [base: number, unit: number, offsets: Deferred];

function after(region: Deferred, bytes: number): Deferred {
  return { resolve: () => region.resolve() + bytes };
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
