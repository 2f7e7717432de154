import { groupBy } from "../groupBy.ts";
import { type Chart, drawCharts, type Series } from "../plot/chart.ts";

/** What the plot needs of a measured quantizer. */
export interface PlottedQuantizer {
  readonly quantizer: string;
  readonly bits: number;
  readonly distortion: number;
  readonly bound: number;
  /** Weights decoded and multiplied per second; null or absent where it was not measured. */
  readonly weightsPerSecond?: number | null;
}

/** Figure 2 of the Q-Palette paper, the same as a ratio to the bound and, where measured, error over speed. */
export function palettePlot(results: readonly PlottedQuantizer[]): string {
  const families = groupBy(results, ({ quantizer }) => quantizer.replace(/-[\d.]+$/, ""));
  const bits = results.map((result) => result.bits);
  const series = (of: (result: PlottedQuantizer) => { x: number; y: number; label?: string } | undefined) =>
    [...families].flatMap(([name, members]): Series[] => {
      const points = members.flatMap((member) => {
        const point = of(member);
        return point ? [{ ...point, title: member.quantizer }] : [];
      });
      return points.length === 0 ? [] : [{ name, points }];
    });
  const boundName = "bound 2^(-2 bits)";
  const boundSeries = (y: (bits: number) => number): Series => ({
    name: boundName,
    bound: true,
    points: [Math.min(...bits), Math.max(...bits)].map((x) => ({ x, y: y(x) })),
  });
  const charts: Chart[] = [
    {
      title: "Error of Gaussian weights",
      x: { title: "bits per weight" },
      y: { title: "mean squared error, variance 1", log: true },
      series: [...series((r) => ({ x: r.bits, y: r.distortion })), boundSeries((b) => 2 ** (-2 * b))],
    },
    {
      title: "Gap to the bound",
      x: { title: "bits per weight" },
      y: { title: "error / bound" },
      series: [...series((r) => ({ x: r.bits, y: r.distortion / r.bound })), boundSeries(() => 1)],
    },
  ];
  if (results.some(({ weightsPerSecond }) => weightsPerSecond)) {
    charts.push({
      title: "Error over decode speed",
      x: { title: "weights per second, batch 1", log: true },
      y: { title: "mean squared error, variance 1", log: true },
      series: series(({ weightsPerSecond: x, distortion: y, bits: b }) =>
        x ? { x, y, label: Number.isInteger(b) ? String(b) : undefined } : undefined,
      ),
    });
  }
  return drawCharts(charts);
}
