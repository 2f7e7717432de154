import type { Choice } from "../budget/plan.ts";
import { fusedSpans, mixOf } from "../engine/planning/mix.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { table } from "./output.ts";

/** Characters of a line, and of one cell: bits, and the line that joins fused layers. */
const [WIDTH, CELL] = [110, 3];

/**
 * A plan for a terminal: blocks across, layers down, in each cell the bits; a line at its right joins the layers that
 * are fused. Below it, how often each scheme was chosen.
 */
export function drawMix(choice: readonly Choice[]): string {
  const { rows, blocks, ends } = mixOf(choice);
  const spans = blocks.map((block) => fusedSpans(rows, block));
  const label = Math.max(...rows.map((row) => row.length), ...ends.map(({ kind }) => kind.length), 5);
  const perLine = Math.max(1, Math.floor((WIDTH - label - 1) / CELL));
  const lines: string[] = [];
  for (let first = 0; first < blocks.length; first += perLine) {
    const shown = Array.from({ length: Math.min(perLine, blocks.length - first) }, (_, i) => first + i);
    const numbers = shown.map((block) => (block % 5 === 0 ? String(block) : "").padEnd(CELL)).join("");
    lines.push(`${"block".padEnd(label)} ${numbers}`.trimEnd());
    for (const [r, row] of rows.entries()) {
      const drawn = shown.map((block) => {
        const cell = blocks[block].get(row);
        return (cell ? bitsText(cell.scheme) : "").padEnd(CELL - 1) + joint(spans[block], r);
      });
      lines.push(`${row.padEnd(label)} ${drawn.join("")}`.trimEnd());
    }
    lines.push("");
  }
  for (const { kind, scheme } of ends) lines.push(`${kind.padEnd(label)} ${scheme}`);
  return `${lines.join("\n")}\n\n${counts(choice)}`;
}

/** `3¼`; a float scheme's bits. */
function bitsText(scheme: string): string {
  const { bits } = parseScheme(scheme);
  return `${Math.floor(bits)}${["", "¼", "½", "¾"][Math.round((bits % 1) * 4)]}`;
}

/** The piece of the line right of a cell, which joins the fused layers above and below. */
function joint(spans: ReturnType<typeof fusedSpans>, row: number): string {
  const span = spans.find(({ members }) => members[0] <= row && row <= members.at(-1)!);
  if (!span) return " ";
  if (row === span.members[0]) return "┐";
  if (row === span.members.at(-1)) return "┘";
  return span.members.includes(row) ? "┤" : "│";
}

function counts(choice: readonly Choice[]): string {
  const bySchemes = new Map<string, number>();
  for (const { layers, option } of choice)
    bySchemes.set(option, (bySchemes.get(option) ?? 0) + layers.length);
  const rows = [...bySchemes].sort(
    ([a], [b]) => parseScheme(a).bits - parseScheme(b).bits || (a < b ? -1 : 1),
  );
  return table(
    ["scheme", "layers"],
    rows.map(([scheme, count]) => [scheme, String(count)]),
    ["layers"],
  );
}
