import { breather } from "../breathe.ts";
import type { Runner } from "../runner.ts";
import { batches, type ScoreRequest } from "./batcher.ts";
import { summarizeRow } from "./softmax.ts";

/** What a model thinks of a continuation. */
export interface Score {
  /** Natural log of the probability of all its tokens. */
  logProbability: number;
  /** Whether greedy decoding gives it. */
  greedy: boolean;
}

/** Recorded steps are kept by their rows of logits: multiples of this keep them few. */
const ROW_UNIT = 8;

export interface ScoreOptions {
  readonly onProgress?: (finished: number) => void;
  readonly signal?: AbortSignal;
}

/** Scores of every request's continuations, in order. */
export async function scoreRequests(
  runner: Runner,
  requests: readonly ScoreRequest[],
  { onProgress, signal }: ScoreOptions = {},
): Promise<Score[][]> {
  const { vocabularySize } = runner.spec;
  const scores = requests.map(({ continuations }) =>
    continuations.map((): Score => ({ logProbability: 0, greedy: true })),
  );
  const breathe = breather();
  let done = 0;
  for (const { targets, finished, ...input } of batches(requests, runner.chunk, runner.cache.sequences)) {
    signal?.throwIfAborted();
    const rows = Math.min(input.ids.length, Math.ceil(targets.length / ROW_UNIT) * ROW_UNIT);
    const logits = await runner.step(input, rows);
    const first = rows - targets.length;
    for (const [i, ofRow] of targets.entries()) {
      const at = (first + i) * vocabularySize;
      const { likeliest, logSum } = summarizeRow(logits, at, vocabularySize);
      for (const { request, continuation, id } of ofRow) {
        const score = scores[request][continuation];
        score.logProbability += logits[at + id] - logSum;
        score.greedy &&= likeliest === id;
      }
    }
    done += finished;
    onProgress?.(done);
    await breathe();
  }
  return scores;
}
