/**
 * Branch and bound over the core's configurations, for problems of few blocks, where the Lagrangian bound is loose: the
 * loss of a plan is the bound plus its penalties plus the price of the budget it leaves over.
 *
 * @module
 */
import type { Core, Penalties } from "./core.ts";
import type { Configuration } from "./frontier.ts";
import { type Proven, totalOf } from "./lagrangian.ts";

/** Some 20 ms; what takes more is left to HiGHS. */
const MAX_NODES = 300_000;
/** One level of recursion each; far fewer are searched to the end anyway. */
const MAX_BLOCKS = 500;

/**
 * Better plans than the given one, as long as they are better by more than `gap` (relative). The bound rises only when
 * the search could be completed.
 */
export function search(capacity: number, core: Core, dual: Penalties, start: Proven, gap: number): Proven {
  if (core.choices.length > MAX_BLOCKS) return start;
  const { price, leastOfBlock } = dual;
  const blocks = core.choices.map((list, block) => ({
    block,
    choices: list
      .map((to) => ({ to, penalty: Math.max(0, to.loss + price * to.cost - leastOfBlock[block]) }))
      .sort((a, b) => a.penalty - b.penalty),
    least: Math.min(...list.map(({ cost }) => cost)),
    most: Math.max(...list.map(({ cost }) => cost)),
  }));
  // Wide blocks first: what remains then fits in almost any case.
  blocks.sort((a, b) => b.most - b.least - (a.most - a.least));
  const remaining = [{ least: 0, most: 0 }];
  for (const { least, most } of [...blocks].reverse()) {
    const after = remaining[0];
    remaining.unshift({ least: after.least + least, most: after.most + most });
  }
  let plan = start.plan;
  let loss = totalOf(plan).loss;
  let bound = Infinity;
  let nodes = 0;
  const chosen: Configuration[] = [...plan];

  const visit = (depth: number, cost: number, penalty: number): void => {
    if (cost + remaining[depth].least > capacity || ++nodes > MAX_NODES) return;
    const left = Math.max(0, capacity - cost - remaining[depth].most);
    const best = start.bound + penalty + price * left;
    if (best >= loss - gap * Math.abs(loss)) {
      bound = Math.min(bound, best);
      return;
    }
    if (depth < blocks.length) {
      const { block, choices } = blocks[depth];
      for (const choice of choices) {
        chosen[block] = choice.to;
        visit(depth + 1, cost + choice.to.cost, penalty + choice.penalty);
      }
      return;
    }
    const total = totalOf(chosen);
    if (total.cost <= capacity && total.loss < loss) {
      plan = [...chosen];
      loss = total.loss;
    }
  };
  visit(0, 0, 0);
  const complete = core.complete && nodes <= MAX_NODES;
  return { plan, bound: complete ? Math.max(start.bound, Math.min(bound, loss)) : start.bound };
}
