import type { Frontier } from "../engine/planning/frontier.ts";
import { groupBy } from "../groupBy.ts";
import { type Chart, drawCharts, type Series } from "../plot/chart.ts";

/** A quantized model whose perplexity was measured. */
export interface MeasuredPoint {
  readonly kind: "mix" | "single";
  readonly label: string;
  readonly bits: number;
  readonly bytes: number;
  readonly perplexity: number;
  readonly predictedLoss: number;
}

const MIX = "mix";

/** Predicted loss over bits and over speed, single schemes beside the mixes; measured perplexity where there is any. */
export function frontierPlot(frontier: Frontier, measured: readonly MeasuredPoint[]): string {
  const families = groupBy(frontier.single, ({ scheme }) => scheme.replace(/-[\d.]+$/, ""));
  const singles = (x: (point: Frontier["single"][number]) => number | undefined, scattered = false) =>
    [...families].map(
      ([name, members]): Series => ({
        name,
        scattered,
        points: members.flatMap((member) => {
          const at = x(member);
          const label = scattered && Number.isInteger(member.bits) ? String(member.bits) : undefined;
          return at === undefined ? [] : [{ x: at, y: member.loss, title: member.scheme, label }];
        }),
      }),
    );
  const loss = { title: "predicted loss, nats per token", log: true };
  const charts: Chart[] = [
    {
      title: "Loss over bits",
      x: { title: "bits per weight of the linear layers" },
      y: loss,
      series: [
        { name: MIX, points: frontier.bits.map((point) => ({ x: point.bits, y: point.loss })) },
        ...singles(({ bits }) => bits),
        {
          name: "ideal quantizers",
          bound: true,
          points: frontier.bits.map((point) => ({ x: point.bits, y: point.idealLoss })),
        },
      ],
    },
  ];
  if (frontier.speed.length > 0) {
    charts.push({
      title: "Loss over speed",
      x: { title: "tokens per second, predicted" },
      y: loss,
      series: [
        {
          name: MIX,
          points: frontier.speed.map(({ tokensPerSecond = 0, loss: y, bits }) => ({
            x: tokensPerSecond,
            y,
            title: `${bits.toFixed(2)} bits`,
          })),
        },
        ...singles(({ tokensPerSecond }) => tokensPerSecond, true),
      ],
    });
  }
  if (measured.length > 0) {
    const series = (name: string, points: readonly MeasuredPoint[]): Series => ({
      name,
      points: points.map(({ bits, perplexity, label }) => ({ x: bits, y: perplexity, title: label })),
    });
    charts.push({
      title: "Measured perplexity over bits",
      x: { title: "bits per weight of the linear layers" },
      y: { title: "perplexity", log: true },
      series: [
        series(
          MIX,
          measured.filter(({ kind }) => kind === "mix"),
        ),
        series(
          "tcq-s",
          measured.filter(({ kind }) => kind === "single"),
        ),
      ],
    });
  }
  return drawCharts(charts);
}
