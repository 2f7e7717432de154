/**
 * What goes to stdout: texts, one JSON document, or tables.
 *
 * @module
 */

import { UsageError } from "../errors.ts";

/** A reader that left (`halftone ... | head`) is no error; of others whoever prints is told. */
export function endQuietlyOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
  });
  // Nobody is left to read what went wrong with stderr.
  process.stderr.on("error", () => undefined);
}

/** Writes to stdout and waits until it is taken, so that a slow reader slows us down. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error: NodeJS.ErrnoException | null | undefined) => {
      if (!error) return resolve();
      const reason = error.code === "ENOSPC" ? "no space is left" : error.message;
      reject(new UsageError(`stdout: cannot be written (${reason}); send it elsewhere`, { cause: error }));
    });
  });
}

export function printJson(document: unknown): Promise<void> {
  return print(`${JSON.stringify(document, null, 2)}\n`);
}

/** A line for people only: to stderr, and only when somebody watches. */
export function remark(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`${text}\n`);
}

/** Rows under a header, numbers (columns named in `right`) to the right. */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly string[] = [],
): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => (right.includes(header[i]) ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join("  ")
      .trimEnd();
  return `${all.map(line).join("\n")}\n`;
}
