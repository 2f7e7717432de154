/**
 * Local improvement of a plan: while some pair of blocks can change their choices within the budget and lower the
 * loss, make the best such change.
 *
 * @module
 */
import type { Configuration } from "./frontier.ts";
import { totalOf } from "./lagrangian.ts";

/** A round sorts every move: both bounds keep huge problems to seconds. */
const MAX_ROUNDS = 500;
const MAX_MOVES = 20_000_000;

interface Move {
  readonly block: number;
  readonly to: Configuration | undefined;
  readonly cost: number;
  readonly loss: number;
}

/** No change at all, so that a pair may be a single move. */
const stay: Move = { block: -1, to: undefined, cost: 0, loss: 0 };

/**
 * A plan no worse than the given feasible one, each block's configuration one of its `choices` or as it was. Stops at a
 * loss that is low `enough`.
 */
export function improve(
  capacity: number,
  choices: readonly (readonly Configuration[])[],
  start: readonly Configuration[],
  enough: number,
): readonly Configuration[] {
  const size = choices.reduce((sum, list) => sum + list.length, 1);
  const rounds = Math.min(MAX_ROUNDS, Math.ceil(MAX_MOVES / size));
  let plan = start;
  for (let round = 0; round < rounds; round++) {
    const { cost, loss } = totalOf(plan);
    if (loss <= enough) break;
    const moves = choices.flatMap((list, block): Move[] =>
      list.map((to) => ({ block, to, cost: to.cost - plan[block].cost, loss: to.loss - plan[block].loss })),
    );
    const pair = bestPair([stay, ...moves], capacity - cost);
    if (pair === undefined) break;
    const next = plan.map((each, block) => pair.find((move) => move.block === block)?.to ?? each);
    const total = totalOf(next);
    // Sums of differences round otherwise than the sums themselves.
    if (total.loss >= loss || total.cost > capacity) break;
    plan = next;
  }
  return plan;
}

/** The two moves of different blocks that together lower the loss most within `slack`. */
function bestPair(moves: Move[], slack: number): [Move, Move] | undefined {
  moves.sort((a, b) => a.cost - b.cost);
  // Of the moves up to each: the one of least loss, and the one of least loss in another block.
  const first: Move[] = [];
  const second: (Move | undefined)[] = [];
  let [best, other]: (Move | undefined)[] = [undefined, undefined];
  for (const move of moves) {
    if (best === undefined || move.loss < best.loss) {
      if (best?.block !== move.block) other = best;
      best = move;
    } else if (move.block !== best.block && (other === undefined || move.loss < other.loss)) other = move;
    first.push(best);
    second.push(other);
  }
  let result: [Move, Move] | undefined;
  let least = 0;
  let last = moves.length - 1;
  for (const move of moves) {
    while (last >= 0 && moves[last].cost + move.cost > slack) last--;
    if (last < 0) break;
    const partner = first[last].block === move.block && move !== stay ? second[last] : first[last];
    if (partner !== undefined && move.loss + partner.loss < least) {
      least = move.loss + partner.loss;
      result = [move, partner];
    }
  }
  return result;
}
