import type { ModelPlan } from "../budget/modelPlan.ts";
import { fusedSpans, mixOf } from "../engine/planning/mix.ts";
import { ramp, readableOn } from "../plot/color.ts";
import { element, textElement } from "../plot/svg.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { formatBytes, significant } from "./format.ts";
import { runsOf } from "./runs.ts";

const cell = { width: 30, height: 24 };
const margin = { left: 88, top: 62, right: 16, bottom: 14 };
const legend = { height: 58, swatch: 34 };
const LEAST_WIDTH = 560;
const [ink, paper] = ["#222", "#fff"];

/** Figure 1 of the Q-Palette paper: blocks across, layers down, colours for bits, fused layers outlined. */
export function mixPlot(plan: ModelPlan, name: string): string {
  const { rows, blocks, ends } = mixOf(plan.choice);
  const schemes = [...new Set(plan.choice.map(({ option }) => option))];
  const widths = [...new Set(schemes.map((scheme) => parseScheme(scheme).bits))].sort((a, b) => a - b);
  const quantized = widths.filter((bits) => bits <= 8);
  const [low, high] = [Math.min(...quantized, 8), Math.max(...quantized, 1)];
  // Equal steps of bits are equal steps of colour; floats are as dark as it gets.
  const color = (bits: number) => ramp(high > low ? Math.min(1, (bits - low) / (high - low)) : 0.5);

  const gridHeight = rows.length * cell.height;
  const endsTop = margin.top + gridHeight + 30;
  const legendTop = endsTop + ends.length * (cell.height + 4) + 22;
  const width = Math.max(LEAST_WIDTH, margin.left + blocks.length * cell.width + margin.right);
  const height = legendTop + legend.height + margin.bottom;

  const cells = blocks.flatMap((block, b) =>
    rows.flatMap((kind, r) => {
      const found = block.get(kind);
      return found
        ? [
            drawCell(
              margin.left + b * cell.width,
              margin.top + r * cell.height,
              found.scheme,
              found.name,
              color,
            ),
          ]
        : [];
    }),
  );
  const outlines = blocks.flatMap((block, b) =>
    fusedSpans(rows, block).map(({ members }) => outline(margin.left + b * cell.width, members)),
  );
  const labels = rows.map((kind, r) =>
    textElement(kind, {
      x: margin.left - 8,
      y: margin.top + (r + 0.5) * cell.height + 4,
      "text-anchor": "end",
    }),
  );
  const numbers = blocks.map((_, b) =>
    textElement(String(b), {
      x: margin.left + (b + 0.5) * cell.width,
      y: margin.top + gridHeight + 14,
      "text-anchor": "middle",
      "font-size": 9,
    }),
  );
  const endCells = ends.flatMap(({ kind, scheme }, i) => {
    const top = endsTop + i * (cell.height + 4);
    return [
      textElement(kind, { x: margin.left - 8, y: top + cell.height / 2 + 4, "text-anchor": "end" }),
      drawCell(margin.left, top, scheme, kind, color),
      textElement(scheme, { x: margin.left + cell.width + 8, y: top + cell.height / 2 + 4 }),
    ];
  });
  const swatches = widths.flatMap((bits, i) => {
    const x = margin.left + i * legend.swatch;
    return [
      element("rect", { x, y: legendTop, width: legend.swatch, height: 14, fill: color(bits) }),
      textElement(String(bits), {
        x: x + legend.swatch / 2,
        y: legendTop + 28,
        "text-anchor": "middle",
        "font-size": 10,
      }),
    ];
  });
  return `${element(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      "font-family": "system-ui, sans-serif",
      "font-size": 12,
      fill: ink,
    },
    element("rect", { width, height, fill: paper }),
    textElement(name, { x: margin.left, y: 22, "font-size": 14, "font-weight": "bold" }),
    textElement(subtitle(plan), { x: margin.left, y: 42 }),
    ...labels,
    ...cells,
    ...outlines,
    ...numbers,
    ...endCells,
    textElement("bits", { x: margin.left - 8, y: legendTop + 11, "text-anchor": "end" }),
    ...swatches,
    textElement("Columns are blocks. Outlined layers are fused: stored and multiplied as one matrix.", {
      x: margin.left,
      y: legendTop + 50,
      "font-size": 11,
    }),
  )}\n`;
}

function subtitle({ predicted: { bytes, linearBits, loss, tokensPerSecond } }: ModelPlan): string {
  const speed = tokensPerSecond === undefined ? "" : `, ${significant(tokensPerSecond)} tokens/s`;
  return `${formatBytes(bytes)}, linear layers at ${linearBits.toFixed(2)} bits, predicted loss ${Number(loss.toPrecision(3))}${speed}`;
}

function drawCell(
  x: number,
  y: number,
  scheme: string,
  name: string,
  color: (bits: number) => string,
): string {
  const { bits } = parseScheme(scheme);
  const fill = color(bits);
  return element(
    "g",
    {},
    element("rect", { x: x + 0.5, y: y + 0.5, width: cell.width - 1, height: cell.height - 1, fill }),
    textElement(String(bits), {
      x: x + cell.width / 2,
      y: y + cell.height / 2 + 3.5,
      "text-anchor": "middle",
      "font-size": 10,
      fill: readableOn(fill),
    }),
    element("title", {}, `${name}: ${scheme}`),
  );
}

/** Around fused layers; rows between them that are not fused are stepped over by a line at the side. */
function outline(x: number, members: readonly number[]): string {
  const runs = runsOf(members);
  const boxes = runs.map(([first, last]) =>
    element("rect", {
      x: x + 1.5,
      y: margin.top + first * cell.height + 1.5,
      width: cell.width - 3,
      height: (last - first + 1) * cell.height - 3,
    }),
  );
  const bridges = runs.slice(1).map(([first], i) => {
    const from = margin.top + (runs[i][1] + 1) * cell.height - 1.5;
    const to = margin.top + first * cell.height + 1.5;
    return element("path", { d: `M${x + 1.5} ${from}V${to}` });
  });
  return element("g", { fill: "none", stroke: "#d6336c", "stroke-width": 2.5 }, ...boxes, ...bridges);
}
