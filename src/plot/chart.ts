/**
 * Line charts side by side as one SVG document.
 *
 * @module
 */
import { type Extent, linearScale, logScale, type Scale } from "./scale.ts";
import { element, short, textElement } from "./svg.ts";

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
  /** A dashed line without marks: a bound, not a measurement. */
  readonly bound?: boolean;
  /** Marks without a line: points that no path leads through. */
  readonly scattered?: boolean;
}

export interface Point {
  readonly x: number;
  readonly y: number;
  /** Written beside the mark. */
  readonly label?: string;
  /** Shown by viewers when the pointer rests on the mark. */
  readonly title?: string;
}

export interface Axis {
  readonly title: string;
  readonly log?: boolean;
}

export interface Chart {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
}

/** Okabe and Ito's colours, which colour-blind readers can tell apart; grey and wine (Paul Tol's) for more series. */
const colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#882255"];
const [ink, faint] = ["#222", "#ddd"];
const WIDTH = 460;
const HEIGHT = 400;
const margin = { left: 70, right: 20, top: 44, bottom: 56 };
const LEGEND_LINE = 24;
const font = "system-ui, sans-serif";

/** An SVG document with the charts in a row and one legend; a series has the same colour in each. */
export function drawCharts(charts: readonly Chart[]): string {
  const names = [...new Set(charts.flatMap(({ series }) => series.map(({ name }) => name)))];
  const bounds = new Set(
    charts.flatMap(({ series }) => series.filter((s) => s.bound).map(({ name }) => name)),
  );
  const measured = names.filter((name) => !bounds.has(name));
  const color = (name: string) => (bounds.has(name) ? ink : colors[measured.indexOf(name) % colors.length]);
  const [fullWidth, fullHeight] = [WIDTH * charts.length, HEIGHT + LEGEND_LINE];
  const panels = charts.map((chart, i) =>
    element("g", { transform: `translate(${i * WIDTH},0)` }, ...drawChart(chart, color)),
  );
  return `${element(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${fullWidth} ${fullHeight}`,
      width: fullWidth,
      height: fullHeight,
      "font-family": font,
      "font-size": 12,
      fill: ink,
    },
    element("rect", { width: fullWidth, height: fullHeight, fill: "#fff" }),
    ...panels,
    drawLegend(names, color, bounds),
  )}\n`;
}

function drawChart({ title, x, y, series }: Chart, color: (name: string) => string): string[] {
  const points = series.flatMap((each) => each.points);
  const across = { from: margin.left, to: WIDTH - margin.right };
  const up = { from: HEIGHT - margin.bottom, to: margin.top };
  const horizontal = scaleOf(
    x,
    points.map((point) => point.x),
    across,
  );
  const vertical = scaleOf(
    y,
    points.map((point) => point.y),
    up,
  );
  const center = (across.from + across.to) / 2;
  const middle = (up.from + up.to) / 2;
  return [
    textElement(title, { x: across.from, y: 24, "font-size": 14, "font-weight": "bold" }),
    ...horizontal.ticks.flatMap((tick) => {
      const at = horizontal.place(tick);
      return [
        element("path", { d: `M${short(at)} ${up.to}V${up.from}`, stroke: faint }),
        textElement(tickText(tick), { x: at, y: up.from + 18, "text-anchor": "middle" }),
      ];
    }),
    ...vertical.ticks.flatMap((tick) => {
      const at = vertical.place(tick);
      return [
        element("path", { d: `M${across.from} ${short(at)}H${across.to}`, stroke: faint }),
        textElement(tickText(tick), { x: across.from - 8, y: at + 4, "text-anchor": "end" }),
      ];
    }),
    textElement(x.title, { x: center, y: up.from + 40, "text-anchor": "middle" }),
    textElement(y.title, {
      "text-anchor": "middle",
      transform: `translate(18,${short(middle)}) rotate(-90)`,
    }),
    ...series.map((each) => drawSeries(each, horizontal, vertical, color(each.name))),
  ];
}

function drawSeries({ points, bound, scattered }: Series, x: Scale, y: Scale, color: string): string {
  const places = points.map((point) => ({ ...point, px: x.place(point.x), py: y.place(point.y) }));
  const path = places.map(({ px, py }, i) => `${i === 0 ? "M" : "L"}${short(px)} ${short(py)}`).join("");
  const line = element("path", {
    d: path,
    fill: "none",
    stroke: color,
    "stroke-width": 1.5,
    "stroke-dasharray": bound ? "5 4" : undefined,
  });
  if (bound) return line;
  const marks = places.flatMap(({ px, py, label, title }) => [
    element(
      "circle",
      { cx: px, cy: py, r: 3 },
      ...(title === undefined ? [] : [element("title", {}, title)]),
    ),
    ...(label === undefined ? [] : [textElement(label, { x: px + 5, y: py - 5, "font-size": 10 })]),
  ]);
  return (scattered ? "" : line) + element("g", { fill: color }, ...marks);
}

function drawLegend(
  names: readonly string[],
  color: (name: string) => string,
  bounds: ReadonlySet<string>,
): string {
  let at = margin.left;
  const entries = names.map((name) => {
    const entry = element(
      "g",
      { transform: `translate(${short(at)},${HEIGHT + 4})` },
      element("path", {
        d: "M0 0H22",
        stroke: color(name),
        "stroke-width": 2,
        "stroke-dasharray": bounds.has(name) ? "5 4" : undefined,
      }),
      ...(bounds.has(name) ? [] : [element("circle", { cx: 11, cy: 0, r: 3, fill: color(name) })]),
      textElement(name, { x: 28, y: 4 }),
    );
    at += 52 + 7 * name.length;
    return entry;
  });
  return entries.join("");
}

function scaleOf(axis: Axis, values: readonly number[], extent: Extent): Scale {
  return axis.log ? logScale(values, extent) : linearScale(values, extent);
}

/** `0.002`, `5`, `1e-5`, `20G`. */
function tickText(value: number): string {
  if (value >= 1e9) return `${value / 1e9}G`;
  if (value >= 1e6) return `${value / 1e6}M`;
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
}
