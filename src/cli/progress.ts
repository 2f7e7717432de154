import { formatSeconds } from "./format.ts";

/** A line on a terminal that is overwritten as the work goes on. */
export interface ProgressLine {
  /** `done` of `total`; `detail` says it in the work's own units. `secondsLeft` by the mean pace where not given. */
  update(done: number, total: number, detail?: string, secondsLeft?: number | undefined): void;
  /** Removes the line. */
  clear(): void;
}

const INTERVAL_MS = 100;

/** Shows how far `work` has come, under a label, until it ends. */
export async function withProgress<T>(label: string, work: (line: ProgressLine) => Promise<T>): Promise<T> {
  const line = progressLine(label);
  try {
    return await work(line);
  } finally {
    line.clear();
  }
}

/** Progress of `label` on stderr; silent when that is no terminal. */
export function progressLine(label: string): ProgressLine {
  const stream = process.stderr;
  if (!stream.isTTY) return { update() {}, clear() {} };
  const started = performance.now();
  let shownAt = -Infinity;
  let shown = false;
  return {
    update(done, total, detail = "", secondsLeft?: number) {
      const now = performance.now();
      if (now - shownAt < INTERVAL_MS && done < total) return;
      shownAt = now;
      shown = true;
      const left = secondsLeft ?? ((now - started) / 1000 / done) * (total - done);
      const line = progressText(label, done, total, left, detail);
      stream.write(`\r${line.slice(0, (stream.columns || 80) - 1)}\u001b[K`);
    },
    clear() {
      if (shown) stream.write("\r\u001b[K");
      shown = false;
    },
  };
}

/** `quantizing  42%  12.3 MB/s  3.2 s left` */
function progressText(
  label: string,
  done: number,
  total: number,
  secondsLeft: number,
  detail: string,
): string {
  const fraction = total > 0 ? Math.min(1, done / total) : 0;
  const left = fraction > 0 && fraction < 1 ? `${formatSeconds(secondsLeft)} left` : "";
  return [label, `${Math.floor(100 * fraction)}%`.padStart(4), detail, left].filter(Boolean).join("  ");
}

/** Shows `label` on a terminal while `work` runs. */
export async function during<T>(label: string, work: () => Promise<T>): Promise<T> {
  const { stderr } = process;
  if (!stderr.isTTY) return work();
  stderr.write(label);
  try {
    return await work();
  } finally {
    stderr.write("\r\u001b[K");
  }
}
