/**
 * The integer program of a problem: (3) of the Q-Palette paper where every set is one layer, (4) with fused sets.
 *
 * minimize the sum of loss over the taken items, such that their sets cover each layer exactly once and their costs
 * do not exceed the capacity.
 *
 * @module
 */
import { UsageError } from "../errors.ts";
import { fusibles, setKey } from "./partitions.ts";
import { undominated } from "./point.ts";
import type { Problem } from "./problem.ts";

/** Sums of rounded numbers may exceed a budget by this factor and still meet it. */
const TOLERANCE = 1e-9;

/** What is faster is free: quotients of losses and costs stay finite. */
const LEAST_SECONDS = 1e-15;

/** One binary variable: a set of layers takes an option. */
export interface Item {
  /** Index into the program's sets. */
  readonly set: number;
  /** Index into the problem's options. */
  readonly option: number;
  /** Bits or seconds. */
  readonly cost: number;
  readonly loss: number;
}

/** Independent layers of the program: one part of the plan. */
export interface Block {
  readonly layers: readonly number[];
  /** Ways to cover the layers, as indices into the sets. Never empty. */
  readonly partitions: readonly (readonly number[])[];
}

export interface Program {
  /** Layer indices of each set. */
  readonly sets: readonly (readonly number[])[];
  /** What each set may take, none dominated by another: cost ascends, loss descends. */
  readonly items: readonly (readonly Item[])[];
  readonly blocks: readonly Block[];
  /** Most that a plan may cost, in bits or seconds. */
  readonly capacity: number;
}

/** Loss and size of every layer with every option, as the problem knows them. */
export interface Estimates {
  /** [layer][option] */
  readonly loss: readonly Float64Array[];
  /** [layer][option], in bits. */
  readonly bits: readonly Float64Array[];
}

export function estimate({ layers, options, measured = [] }: Problem): Estimates {
  const loss = layers.map((l) => Float64Array.from(options, (o) => l.sensitivity * o.distortion));
  const bits = layers.map((l) => Float64Array.from(options, (o) => l.weights * o.bits));
  const layerIndex = new Map(layers.map(({ name }, i) => [name, i]));
  const optionIndex = new Map(options.map(({ name }, i) => [name, i]));
  for (const each of measured) {
    const [layer, option] = [layerIndex.get(each.layer)!, optionIndex.get(each.option)!];
    if (each.loss !== undefined) loss[layer][option] = each.loss;
    if (each.bytes !== undefined) bits[layer][option] = 8 * each.bytes;
  }
  return { loss, bits };
}

/** Seconds by set of layers, then by option index. */
export interface Timed {
  readonly layers: readonly number[];
  readonly seconds: ReadonlyMap<number, number>;
}

export function timings({ layers, options, costs = [] }: Problem): Timed[] {
  const layerIndex = new Map(layers.map(({ name }, i) => [name, i]));
  const optionIndex = new Map(options.map(({ name }, i) => [name, i]));
  const sets = new Map<string, { layers: number[]; seconds: Map<number, number> }>();
  for (const cost of costs) {
    const indices = cost.layers.map((name) => layerIndex.get(name)!).sort((a, b) => a - b);
    const key = setKey(indices);
    const set = sets.get(key) ?? { layers: indices, seconds: new Map() };
    sets.set(key, set);
    set.seconds.set(optionIndex.get(cost.option)!, cost.seconds < LEAST_SECONDS ? 0 : cost.seconds);
  }
  return [...sets.values()];
}

/** Builds the program. Throws a UsageError where a layer cannot be covered by any set that has costs. */
export function buildProgram(problem: Problem, { loss, bits }: Estimates): Program {
  const { layers, options, budget } = problem;
  if ("bits" in budget) {
    const sets = layers.map((_, layer) => [layer]);
    const items = sets.map(([layer], set) =>
      undominated(options.map((_, option) => item(set, option, bits[layer][option], loss[layer][option]))),
    );
    const blocks = sets.map((set, index) => ({ layers: set, partitions: [[index]] }));
    const weights = layers.reduce((sum, layer) => sum + layer.weights, 0);
    return { sets, items, blocks, capacity: budget.bits * weights * (1 + TOLERANCE) };
  }
  const timed = timings(problem);
  const sets = timed.map((each) => each.layers);
  const items = timed.map(({ layers: fused, seconds }, set) =>
    undominated(
      [...seconds].map(([option, cost]) =>
        item(
          set,
          option,
          cost,
          fused.reduce((sum, layer) => sum + loss[layer][option], 0),
        ),
      ),
    ),
  );
  const blocks = fusibles(layers.length, sets, (layer) => layers[layer].name);
  const stuck = blocks.find(({ partitions }) => partitions.length === 0);
  if (stuck) {
    const names = stuck.layers.map((layer) => JSON.stringify(layers[layer].name)).join(", ");
    throw new UsageError(`costs: nothing covers ${names}; list the seconds of each layer with some option`);
  }
  const capacity = budget.seconds * (1 + TOLERANCE) - (problem.overheadSeconds ?? 0);
  return { sets, items, blocks, capacity };
}

function item(set: number, option: number, cost: number, loss: number): Item {
  return { set, option, cost, loss };
}
