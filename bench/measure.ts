/** The numbers of a flag's list. */
export function numbers(list: string): number[] {
  return list.split(",").map(Number);
}

/** Seconds that `work` takes. */
export function seconds(work: () => void): number {
  const started = performance.now();
  work();
  return (performance.now() - started) / 1e3;
}

/** Rows as a table, numbers right-aligned. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join("  ");
  return [header, ...rows].map(line).join("\n");
}
