import type { Selection } from "../src/compensation/settings.ts";
import { groupBy } from "../src/groupBy.ts";
import { drawCharts } from "../src/plot/chart.ts";

/** A perplexity that bench/compensation.ts measured. */
export interface Loss {
  /** Of the folder; the last word, where there are several, is the number of bits: `nuq, not rotated 3`. */
  readonly model: string;
  readonly select: Selection;
  /** Of 1024. */
  readonly channels: number;
  readonly perplexity: number;
  readonly context: number;
  readonly windows: number;
}

/** A chart for each family of models, a line for each number of bits; and one for each model with other choices of channels. */
export function plotLosses(losses: readonly Loss[], highest: number): string {
  const { windows, context } = losses[0];
  const pointsOf = (wanted: (loss: Loss) => boolean) =>
    losses
      .filter((each) => wanted(each) && each.channels > 0 && each.perplexity <= highest)
      .map(({ channels, perplexity }) => ({ x: channels, y: perplexity }))
      .sort((a, b) => a.x - b.x);
  const models = [...new Set(losses.map(({ model }) => model))];
  const families = groupBy(models, (model) => /^(.*) \S+$/.exec(model)?.[1] ?? "");
  const charts = Array.from(families, ([family, members]) => ({
    title: family || `${windows} windows of ${context}`,
    series: members.map((model) => ({
      name: family ? `${model.slice(family.length + 1)} bits` : model,
      points: pointsOf((each) => each.model === model && each.select === "exact"),
    })),
  }));
  for (const model of models) {
    const used = [...new Set(losses.flatMap((each) => (each.model === model ? [each.select] : [])))];
    if (used.length < 2) continue;
    const series = used.map((select) => ({
      name: `${select} choice`,
      points: pointsOf((each) => each.model === model && each.select === select),
    }));
    charts.push({ title: model, series });
  }
  return drawCharts(
    charts.map(({ title, series }) => ({
      title,
      x: { title: "channels compensated of 1024", log: true },
      y: { title: "perplexity", log: true },
      series: series.filter(({ points }) => points.length > 0),
    })),
  );
}
