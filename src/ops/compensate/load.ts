import type { ResidualSource } from "../../backends/backend.ts";
import type { ResidualHandle } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { WasmDevice } from "../../backends/wasm/backend.ts";
import { ROW_STEP } from "../../quantizers/residual.ts";

/** A residual for the kernels. */
export interface PackedResidual extends ResidualHandle {
  /** Bytes of a row. */
  readonly stride: number;
  /** By member: first byte in a row, and float32 scales, zeros up to whole steps. */
  readonly parts: readonly { readonly offset: number; readonly scales: Slot }[];
  readonly store: RowStore;
}

/** Where the rows are: in the backend's memory, or in a file that is read at each step. */
export type RowStore =
  | { readonly kind: "memory"; readonly data: Slot }
  | {
      readonly kind: "file";
      readonly descriptor: number;
      readonly position: number;
      readonly cache?: RowCache;
    };

/** Rows that stay in memory, as places.as.ts manages them. */
export interface RowCache {
  readonly slot: Slot;
  readonly rows: number;
  /** Address of the first. */
  readonly first: number;
}

export async function loadResidual(source: ResidualSource, device: WasmDevice): Promise<ResidualHandle> {
  const { bits, columns, stride, members, file } = source;
  const parts = members.map(({ rows, offset, scales }) => {
    const slot = device.allocate(Math.ceil(rows / ROW_STEP) * ROW_STEP * 4);
    new Float32Array(device.memory.buffer, slot.place, rows).set(scales);
    return { offset, scales: slot };
  });
  let store: RowStore;
  if (file) {
    device.files.add(file.name);
    const { descriptor, position, cachedRows = 0 } = file;
    const cache = cachedRows > 0 ? makeCache(Math.min(columns, cachedRows), stride, device) : undefined;
    store = { kind: "file", descriptor, position, cache };
  } else {
    const data = device.reserve(columns * stride);
    const target = device.bytes(data);
    await source.read(target);
    store = { kind: "memory", data };
  }
  const held = parts.reduce((sum, { scales }) => sum + scales.byteLength, 0);
  const handle: PackedResidual = {
    ...{ bits, columns, stride, parts, store, rows: members.map(({ rows }) => rows) },
    byteLength: held + (heldBy(store)?.byteLength ?? 0),
  };
  return handle;
}

export function freeResidual(handle: ResidualHandle, device: WasmDevice): void {
  const { parts, store } = handle as PackedResidual;
  for (const { scales } of parts) device.free(scales);
  const rows = heldBy(store);
  if (rows) device.free(rows);
}

function heldBy(store: RowStore): Slot | undefined {
  return store.kind === "memory" ? store.data : store.cache?.slot;
}

/** A header and an entry for each row, then the rows, from a multiple of 16 bytes on. */
function makeCache(rows: number, stride: number, device: WasmDevice): RowCache {
  const entries = Math.ceil((8 + 8 * rows) / 16) * 16;
  const slot = device.allocate(entries + rows * stride);
  return { slot, rows, first: slot.place + entries };
}
