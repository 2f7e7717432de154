import type { LinearHandle } from "../../backends/operation.ts";
import type { Slot } from "../../backends/slot.ts";
import type { Rotation } from "../../quantizers/hadamard/rotation.ts";
import type { FieldLayout } from "./plan.ts";

/** Numbers shared with tiles.as.ts. */
export const packings = { float: 0, half: 1, nibbleTiles: 2, byteTiles: 3, fieldTiles: 4 } as const;
export type Packing = keyof typeof packings;

/** Weights in the memory of the wasm backend. */
export interface PackedLinear extends LinearHandle {
  readonly packing: Packing;
  readonly data: Slot;
  /** float32 [rows], unless the weights are float. */
  readonly scales?: Slot;
  /** What codes stand for: bytes (level + 64) for nibble tiles, the plan for tiles of fields. */
  readonly codebook?: Pick<Slot, "place">;
  /** Columns in memory, a multiple of 16. */
  readonly padded: number;
  /** Of tiles of fields: where the fields lie. */
  readonly layout?: FieldLayout;
  /** Of tiles of fields: how many of a band's tiles have the plan's first rate. */
  readonly lowTiles?: number;
  readonly rotation?: Rotation;
  /** These are rows of other weights, who own the memory. */
  readonly isSlice?: boolean;
}
