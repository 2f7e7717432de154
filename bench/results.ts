import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** What a benchmark measured so far, in this run and in those before it. */
export interface Results<T> {
  readonly known: readonly T[];
  /** Adds a result at once, so that a run that is ended goes on where it stopped. */
  keep(result: T): void;
}

/** Results in a file, a line of JSON each; the file need not exist. */
export function openResults<T>(path: string): Results<T> {
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
  const known = lines.map((line) => JSON.parse(line) as T);
  return {
    known,
    keep(result) {
      appendFileSync(path, `${JSON.stringify(result)}\n`);
      known.push(result);
    },
  };
}
