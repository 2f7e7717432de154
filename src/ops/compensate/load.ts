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
  | { readonly kind: "file"; readonly descriptor: number; readonly position: number };

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
    const { descriptor, position } = file;
    store = { kind: "file", descriptor, position };
  } else {
    const data = device.reserve(columns * stride);
    const target = device.bytes(data);
    await source.read(target);
    store = { kind: "memory", data };
  }
  const held = parts.reduce((sum, { scales }) => sum + scales.byteLength, 0);
  const handle: PackedResidual = {
    ...{ bits, columns, stride, parts, store, rows: members.map(({ rows }) => rows) },
    byteLength: held + (store.kind === "memory" ? store.data.byteLength : 0),
  };
  return handle;
}

export function freeResidual(handle: ResidualHandle, device: WasmDevice): void {
  const { parts, store } = handle as PackedResidual;
  for (const { scales } of parts) device.free(scales);
  if (store.kind === "memory") device.free(store.data);
}
