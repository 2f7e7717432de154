import type { Choice } from "../../budget/plan.ts";
import { placeOfLayer } from "./layers.ts";

/** A plan as a grid: which scheme each kind of layer has in each block. */
export interface Mix {
  /** Kinds of layers, in the order of use. */
  readonly rows: readonly string[];
  /** Of each block, by kind. */
  readonly blocks: readonly ReadonlyMap<string, MixCell>[];
  /** Embedding and head. */
  readonly ends: readonly { readonly kind: string; readonly scheme: string }[];
}

export interface MixCell {
  readonly name: string;
  readonly scheme: string;
  /** Number of the plan's choice that it belongs to: cells of one choice are fused. */
  readonly set: number;
}

/** The rows that layers usually have, from the input on. */
const ORDER = ["q", "k", "v", "qkv", "o", "gate", "up", "gate_up", "down"];

export function mixOf(choice: readonly Choice[]): Mix {
  const blocks: Map<string, MixCell>[] = [];
  const ends: { kind: string; scheme: string }[] = [];
  const kinds = new Set<string>();
  for (const [set, { layers, option: scheme }] of choice.entries()) {
    for (const name of layers) {
      const { kind, block } = placeOfLayer(name);
      if (block === undefined) ends.push({ kind, scheme });
      else {
        kinds.add(kind);
        while (blocks.length <= block) blocks.push(new Map());
        blocks[block].set(kind, { name, scheme, set });
      }
    }
  }
  const rank = (kind: string) => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);
  return { rows: [...kinds].sort((a, b) => rank(a) - rank(b)), blocks, ends };
}

/** The rows of one block that each fused set spans, first and last. */
export function fusedSpans(
  rows: readonly string[],
  block: ReadonlyMap<string, MixCell>,
): { readonly members: readonly number[]; readonly scheme: string }[] {
  const sets = new Map<number, { members: number[]; scheme: string }>();
  for (const [row, kind] of rows.entries()) {
    const cell = block.get(kind);
    if (!cell) continue;
    const set = sets.get(cell.set) ?? { members: [], scheme: cell.scheme };
    set.members.push(row);
    sets.set(cell.set, set);
  }
  return [...sets.values()].filter(({ members }) => members.length > 1);
}
