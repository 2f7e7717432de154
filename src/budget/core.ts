/**
 * The program without what cannot matter. At the dual's price, each item has a penalty: how much more a plan with it
 * costs than the bound, at least. Items whose penalty exceeds the gap of a known plan are in no better plan.
 *
 * @module
 */
import { type Configuration, configuration } from "./frontier.ts";
import { undominated } from "./point.ts";
import type { Item, Program } from "./program.ts";

/** Configurations listed of one block, and of all. */
const MAX_CONFIGURATIONS = 2000;
const MAX_LISTED = 1_000_000;

/** Loss plus cost at a price, less the least that the block can have: of each set, then of each block. */
export interface Penalties {
  readonly price: number;
  readonly leastOfSet: Float64Array;
  readonly leastOfBlock: Float64Array;
}

export function penalties({ items, blocks }: Program, price: number): Penalties {
  const leastOfSet = Float64Array.from(items, (list) =>
    list.reduce((least, { loss, cost }) => Math.min(least, loss + price * cost), Infinity),
  );
  const leastOfBlock = Float64Array.from(blocks, ({ partitions }) =>
    partitions.reduce((least, sets) => Math.min(least, sumOver(sets, leastOfSet)), Infinity),
  );
  return { price, leastOfSet, leastOfBlock };
}

/** The items that a plan better by up to `gap` than the bound may have. */
export function coreItems(program: Program, dual: Penalties, gap: number): Item[] {
  const { price, leastOfSet, leastOfBlock } = dual;
  const leastWith = new Float64Array(program.sets.length).fill(Infinity);
  program.blocks.forEach(({ partitions }, block) => {
    for (const sets of partitions) {
      const penalty = sumOver(sets, leastOfSet) - leastOfBlock[block];
      for (const set of sets) leastWith[set] = Math.min(leastWith[set], penalty);
    }
  });
  return program.items.flatMap((list, set) =>
    list.filter(({ loss, cost }) => leastWith[set] + loss + price * cost - leastOfSet[set] <= gap),
  );
}

export interface Core {
  /** For each block, the configurations that a plan better by up to `gap` than the bound may have, none dominated. */
  readonly choices: readonly (readonly Configuration[])[];
  /** Whether these are all: lists end at a limit. */
  readonly complete: boolean;
}

/** Lists the core's configurations, within limits of memory. */
export function coreChoices(program: Program, dual: Penalties, gap: number): Core {
  const { price, leastOfSet, leastOfBlock } = dual;
  const limit = Math.max(1, Math.min(MAX_CONFIGURATIONS, Math.floor(MAX_LISTED / program.blocks.length)));
  let complete = true;
  const choices = program.blocks.map(({ partitions }, block) => {
    const found: Configuration[] = [];
    const extend = (sets: readonly number[], chosen: Item[], penalty: number): void => {
      if (penalty > gap) return;
      if (chosen.length === sets.length) {
        if (found.length < limit) found.push(configuration([...chosen]));
        else complete = false;
        return;
      }
      const set = sets[chosen.length];
      for (const each of program.items[set]) {
        if (found.length === limit && !complete) return;
        chosen.push(each);
        extend(sets, chosen, penalty + each.loss + price * each.cost - leastOfSet[set]);
        chosen.pop();
      }
    };
    for (const sets of partitions) extend(sets, [], sumOver(sets, leastOfSet) - leastOfBlock[block]);
    return undominated(found);
  });
  return { choices, complete };
}

function sumOver(sets: readonly number[], values: Float64Array): number {
  return sets.reduce((sum, set) => sum + values[set], 0);
}
