import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseModelPlan } from "../../../src/budget/modelPlan.ts";
import { LAYER_KINDS, type LayerKind, residualGroups } from "../../../src/compensation/groups.ts";
import { uniformShares } from "../../../src/compensation/settings.ts";
import type { MeasuredCosts } from "../../../src/compensation/tuner.ts";
import { Costs } from "../../../src/engine/planning/costs.ts";
import { plannableModel } from "../../../src/engine/planning/layers.ts";
import { measureRowFacts } from "../../../src/engine/planning/rowFacts.node.ts";
import { planWithRows, ROW_LEVELS, type RowFacts } from "../../../src/engine/planning/rows.ts";
import { fusibleSets } from "../../../src/engine/planning/sets.ts";
import { quantizeCheckpoint } from "../../../src/engine/quantize/quantize.node.ts";
import { load } from "../../../src/node.ts";
import { distortions } from "../../../src/quantizers/distortions.ts";
import { temporaryFolder } from "../../checkpoint/temporary.ts";
import { openFixture } from "../../models/fixture.ts";

const schemes = ["nuq-2", "nuq-3", "nuq-4"];

/** A machine where every weight costs a nanosecond a bit, and rows of `dear` kinds a second. */
async function problem(dear: readonly LayerKind[]) {
  const checkpoint = await openFixture("llama3-v5");
  const { layers, decoder } = plannableModel(checkpoint);
  const times = fusibleSets(layers).flatMap((set) =>
    [...schemes, "uniform-8"].map((scheme) => {
      const rows = set.reduce((sum, layer) => sum + layer.rows, 0);
      const { columns } = set[0];
      return { rows, columns, scheme, seconds: rows * columns * Number(scheme.split("-")[1]) * 1e-9 };
    }),
  );
  const costs = new Costs({ batch: 1, threads: 1, overheadSeconds: 0, times });
  const linear = layers.filter(({ role }) => role === "linear");
  const weights = linear.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  const rowCosts = Object.fromEntries(
    LAYER_KINDS.map((kind) => [
      kind,
      [{ channels: 256, seconds: dear.includes(kind) ? 1 : 0.02 * weights * 1e-9 }],
    ]),
  ) as unknown as MeasuredCosts;
  const kinds = residualGroups(decoder, () => true).flatMap(({ kind, members }) =>
    members.map(
      ({ weight }) => [weight, { kind, left: ROW_LEVELS.map((level) => 1 / (1 + level / 64)) }] as const,
    ),
  );
  const rows: RowFacts = { bits: 4, costs: rowCosts, layers: new Map(kinds) };
  const sensitivities = new Map(linear.map(({ name }, i) => [name, 1 + (i % 3)]));
  const options = { sensitivities, palette: schemes, embeddingScheme: "uniform-8", costs };
  const ends = layers.filter(({ role }) => role !== "linear");
  const fixed = ends.reduce((sum, { rows: r, columns }) => sum + r * columns * 8e-9, 0);
  const budget = { tokensPerSecond: 1 / ((3 * weights * 1e-9 + fixed) / 0.97), batch: 1 };
  return { checkpoint, options, budget, rows };
}

describe("a plan that may buy residual rows", () => {
  it("buys them where they gain more than bits for the same time, within the budget", async () => {
    const { checkpoint, options, budget, rows } = await problem(["down"]);
    const dear = await problem([...LAYER_KINDS]);
    const none = await planWithRows(checkpoint, options, budget, { rows: dear.rows, slowdown: 1 });
    expect(none.compensation).toBeUndefined();
    const plan = await planWithRows(checkpoint, options, budget, { rows, slowdown: 1 });
    expect(plan.compensation!.bits).toBe(4);
    expect(plan.compensation!.channels).toMatchObject({ qkv: 256, o: 256, gateUp: 256, down: 0 });
    expect(plan.predicted.loss).toBeLessThan(0.6 * none.predicted.loss);
    expect(plan.predicted.tokensPerSecond).toBeGreaterThanOrEqual(budget.tokensPerSecond);
    // Three kinds take 6% of a step.
    const few = await planWithRows(checkpoint, options, budget, { rows, slowdown: 0.01 });
    expect(few.predicted.loss).toBeGreaterThan(plan.predicted.loss);
    const small = await planWithRows(checkpoint, options, { bits: 2.5 }, { rows, slowdown: 0.2 });
    expect(small.compensation!.channels).toEqual(plan.compensation!.channels);
    expect(parseModelPlan(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
  });

  it("is quantized with its residual and run with its channels", async () => {
    const { checkpoint, options, budget, rows } = await problem(["down"]);
    const { choice, compensation } = await planWithRows(checkpoint, options, budget, { rows, slowdown: 1 });
    const { bits: residual, channels } = compensation!;
    const folder = join(temporaryFolder(), "model");
    await quantizeCheckpoint(checkpoint, folder, { scheme: "f32", choice, residual, channels, threads: 1 });
    const model = await load(folder, { threads: 1 });
    expect(model.runner.reading.compensation).toEqual({ channels, select: "exact" });
    model.dispose();
    const other = await load(folder, { threads: 1, compensation: { select: "random" } });
    expect(other.runner.reading.compensation).toEqual({ channels, select: "random" });
    other.dispose();
    // What was tuned here knows this machine, and whoever asks for channels gets them.
    const tuned = () => ({ channels: uniformShares(8) });
    for (const asked of [undefined, uniformShares(64)]) {
      const loaded = await load(folder, { threads: 1, compensation: { tuned, channels: asked } });
      expect(loaded.runner.reading.compensation!.channels).toEqual(asked ?? uniformShares(8));
      loaded.dispose();
    }
  });

  it("knows what rows leave of the loss and take of the time", async () => {
    const checkpoint = await openFixture("phi3-partial");
    const { layers, costs } = await measureRowFacts(checkpoint, { threads: 1 });
    const { layers: exact } = await measureRowFacts(checkpoint, { threads: 1, bits: 16 });
    const { layers: plannable } = plannableModel(checkpoint);
    for (const { name, role } of plannable) {
      if (role !== "linear") continue;
      const { left } = layers.get(name)!;
      expect(left[0]).toBe(1);
      for (const [i, share] of left.entries()) if (i > 0) expect(share).toBeLessThanOrEqual(left[i - 1]);
      // More than so many channels' part, for they are the largest ones.
      expect(left.at(-1)).toBeLessThan(0.75);
      // What the residual's own codes lose of what they restore.
      const [share, least] = [left.at(-1)!, exact.get(name)!.left.at(-1)!];
      expect((share - least) / (1 - least)).toBeCloseTo(distortions["uniform-4"], 6);
    }
    for (const kind of LAYER_KINDS) expect(costs[kind].every(({ seconds }) => seconds >= 0)).toBe(true);
  });
});
