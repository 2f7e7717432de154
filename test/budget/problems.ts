import fc from "fast-check";
import type { Problem } from "../../src/budget/problem.ts";

type Layer = Problem["layers"][number];
type Option = Problem["options"][number];
type Cost = NonNullable<Problem["costs"]>[number];

/** Few values, so that ties and zeros are common. */
const sensitivity = fc.oneof(fc.constantFrom(0, 1, 1, 5), fc.double({ min: 0, max: 10, noNaN: true }));
const bits = fc.constantFrom(1.5, 2, 2.25, 2.5, 3, 3.02, 4, 5);
const distortion = fc.oneof(fc.constantFrom(0, 0.01, 0.1), fc.double({ min: 0, max: 0.5, noNaN: true }));
const seconds = fc.oneof(fc.constantFrom(0, 1, 1, 2), fc.double({ min: 0, max: 4, noNaN: true }));

function options(most: number): fc.Arbitrary<Option[]> {
  return fc
    .array(fc.record({ bits, distortion }), { minLength: 1, maxLength: most })
    .map((list) => list.map((each, i) => ({ name: `o${i}`, ...each })));
}

/** Program (3), small enough to try everything; the budget may be infeasible. */
export const bitsProblem: fc.Arbitrary<Problem> = fc.record({
  layers: fc
    .array(fc.record({ weights: fc.integer({ min: 1, max: 50 }), sensitivity }), {
      minLength: 1,
      maxLength: 6,
    })
    .map((list) => list.map((each, i): Layer => ({ name: `l${i}`, ...each }))),
  options: options(5),
  budget: fc.record({ bits: fc.double({ min: 1, max: 5, noNaN: true }) }),
});

/** Program (4): q, k, v and gate, up with some of their sets costed. */
export const fusedProblem: fc.Arbitrary<Problem> = options(3).chain((palette) => {
  const names = ["q", "k", "v", "gate", "up"];
  const sets = [["q"], ["k"], ["v"], ["q", "k"], ["v", "q"], ["k", "v"], ["q", "k", "v"]].concat([
    ["gate"],
    ["up"],
    ["up", "gate"],
  ]);
  const pairs = sets.flatMap((layers) => palette.map(({ name }) => ({ layers, option: name })));
  return fc.record({
    layers: fc.tuple(...names.map(() => sensitivity)).map((list) =>
      list.map(
        (each, i): Layer => ({
          name: names[i],
          weights: i + 1,
          sensitivity: each,
          group: i < 3 ? "a" : "b",
        }),
      ),
    ),
    options: fc.constant(palette),
    costs: fc
      .tuple(...pairs.map(() => fc.option(seconds, { freq: 5 })))
      .map((list) =>
        list.flatMap((each, i): Cost[] => (each === null ? [] : [{ ...pairs[i], seconds: each }])),
      )
      .filter((list) => list.length > 0),
    overheadSeconds: fc.constantFrom(0, 0.5),
    budget: fc.record({ seconds: fc.double({ min: 0.1, max: 12, noNaN: true }) }),
  });
});

/** The least loss of all plans that meet the budget, by trying each; undefined where none does. */
export function bruteForce(problem: Problem): number | undefined {
  const { layers, options: palette, budget, costs, overheadSeconds = 0 } = problem;
  const loss = (names: readonly string[], option: Option) =>
    layers
      .filter(({ name }) => names.includes(name))
      .reduce((sum, layer) => sum + layer.sensitivity * option.distortion, 0);
  const byName = new Map(palette.map((option) => [option.name, option]));
  const items =
    "bits" in budget
      ? layers.flatMap(({ name, weights }) =>
          palette.map((o) => ({ layers: [name], cost: weights * o.bits, loss: loss([name], o) })),
        )
      : costs!.map((c) => ({
          layers: c.layers,
          cost: c.seconds,
          loss: loss(c.layers, byName.get(c.option)!),
        }));
  const weights = layers.reduce((sum, layer) => sum + layer.weights, 0);
  const capacity = "bits" in budget ? budget.bits * weights : budget.seconds - overheadSeconds;
  let best: number | undefined;
  const cover = (open: readonly string[], cost: number, lost: number): void => {
    if (cost > capacity * (1 + 1e-12) + 1e-12) return;
    if (open.length === 0) {
      best = Math.min(best ?? Infinity, lost);
      return;
    }
    for (const item of items) {
      if (!item.layers.includes(open[0]) || !item.layers.every((name) => open.includes(name))) continue;
      cover(
        open.filter((name) => !item.layers.includes(name)),
        cost + item.cost,
        lost + item.loss,
      );
    }
  };
  cover(
    layers.map(({ name }) => name),
    0,
    0,
  );
  return best;
}
