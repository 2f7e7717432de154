/**
 * The integer program solved to a gap by HiGHS (branch and cut, in WebAssembly), which is loaded when first needed.
 *
 * @module
 */
import type { Highs } from "highs";
import { coreItems, type Penalties } from "./core.ts";
import { type Configuration, configuration } from "./frontier.ts";
import { type Proven, totalOf } from "./lagrangian.ts";
import type { Item, Program } from "./program.ts";

/** Both sums are scaled to this, far above HiGHS's absolute tolerances of 1e-6. */
const SCALE = 1e4;

/** More than these would not fit its memory and time: the gap stays as it is. */
const MAX_COLUMNS = 100_000;

export interface Effort {
  /** Relative gap between loss and bound to reach. */
  readonly gap: number;
  /** Most time of the exact solver, in seconds. */
  readonly seconds: number;
}

/**
 * Improves a feasible plan until no plan can be better by more than `gap` (relative), or `seconds` are over.
 * Only the items that a better plan can have are given to the solver, those with `margin` of rounding included.
 */
export async function solveExactly(
  program: Program,
  dual: Penalties,
  { plan: start, bound }: Proven,
  { gap, seconds }: Effort,
  margin: number,
): Promise<Proven> {
  const before = totalOf(start).loss;
  const taken = new Set(start.flatMap(({ items }) => items));
  const better = coreItems(program, dual, before - bound + margin).filter(
    ({ cost }) => cost <= program.capacity,
  );
  const core = [...new Set([...better, ...taken])];
  if (core.length > MAX_COLUMNS) return { plan: start, bound };
  const highs = await loadHighs();
  const largest = core.reduce((most, { loss }) => Math.max(most, Math.abs(loss)), Math.abs(before));
  const lossScale = SCALE / Math.max(largest, 1e-290);
  const costScale = SCALE / program.capacity;
  const layers = program.blocks.reduce((sum, block) => sum + block.layers.length, 0);
  const ones = new Float64Array(layers).fill(1);
  const model = highs.createModel({
    numCols: core.length,
    numRows: layers + 1,
    colCost: Float64Array.from(core, ({ loss }) => loss * lossScale),
    colLower: new Float64Array(core.length),
    colUpper: new Float64Array(core.length).fill(1),
    rowLower: [...ones, -highs.infinity],
    rowUpper: [...ones, SCALE],
    integrality: new Int32Array(core.length).fill(highs.constants.variableType.integer),
    matrix: {
      format: "csc",
      numRows: layers + 1,
      numCols: core.length,
      ...columns(program, core, costScale),
    },
  });
  try {
    model.options.set({ output_flag: false, mip_rel_gap: gap, time_limit: seconds });
    model.setSolution({ colValue: Float64Array.from(core, (item) => (taken.has(item) ? 1 : 0)) });
    model.run();
    const proven = Number(model.info.get("mip_dual_bound")) / lossScale;
    const values = model.getSolution().colValue;
    const found = planOf(
      program,
      core.filter((_, i) => (values?.[i] ?? 0) > 0.5),
    );
    const plan = found !== undefined && totalOf(found).loss < before ? found : start;
    // A plan outside the core is no better than the one we came with.
    const best = Math.min(Number.isFinite(proven) ? proven : bound, before);
    return { plan, bound: Math.max(bound, best) };
  } finally {
    model.dispose();
  }
}

function loadHighs(): Promise<Highs> {
  // Its types are CommonJS's, the module that import finds is not: they disagree about where the default is.
  const module: Promise<unknown> = import("highs");
  return module.then((loaded) => (loaded as { default: () => Promise<Highs> }).default());
}

function columns({ sets }: Program, core: readonly Item[], costScale: number) {
  const capacityRow = sets.reduce((last, layers) => Math.max(last, ...layers), 0) + 1;
  const starts = [0];
  const indices: number[] = [];
  const values: number[] = [];
  for (const { set, cost } of core) {
    for (const layer of sets[set]) {
      indices.push(layer);
      values.push(1);
    }
    indices.push(capacityRow);
    values.push(cost * costScale);
    starts.push(indices.length);
  }
  return {
    starts: Int32Array.from(starts),
    indices: Int32Array.from(indices),
    values: Float64Array.from(values),
  };
}

/** Items as one configuration per block; undefined unless they cover every layer once within the capacity. */
function planOf({ blocks, sets, capacity }: Program, items: readonly Item[]): Configuration[] | undefined {
  const blockOf = new Map(blocks.flatMap(({ layers }, block) => layers.map((layer) => [layer, block])));
  const chosen: Item[][] = blocks.map(() => []);
  for (const item of items) chosen[blockOf.get(sets[item.set][0])!].push(item);
  const covered = chosen.every((list, block) => {
    const layers = list.flatMap(({ set }) => sets[set]);
    return layers.length === blocks[block].layers.length && new Set(layers).size === layers.length;
  });
  const plan = chosen.map(configuration);
  return covered && totalOf(plan).cost <= capacity ? plan : undefined;
}
