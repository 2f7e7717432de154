/**
 * Zero-shot evaluation, scored as lm-evaluation-harness does.
 *
 * @module
 */
import { UsageError } from "../../errors.ts";
import { type BosRule, bosBy } from "../../text/bos.ts";
import type { Model } from "../model.ts";
import { Runner } from "../runner.ts";
import { positionsOf, type ScoreRequest } from "./batcher.ts";
import { encodePair } from "./pair.ts";
import { type Score, scoreRequests } from "./score.ts";
import type { Item, Task, TaskName } from "./tasks.ts";

/** Sequences side by side: enough short items to fill a step. */
const SEQUENCES = 8;

export interface EvaluateOptions {
  /** Starts every context with the beginning-of-sequence token. Default `never`, as the harness does. */
  readonly bos?: BosRule;
  readonly onProgress?: (items: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface EvaluateResult {
  readonly task: TaskName;
  readonly items: number;
  /** Share of items whose likeliest choice, or greedy answer, is the right one. */
  readonly accuracy: number;
  /** The same with log probabilities divided by the choices' lengths in characters; null without choices. */
  readonly accuracyNormalized: number | null;
  /** Of `accuracy`: sample standard deviation over the square root of the items. */
  readonly standardError: number;
  /** e^(mean negative log probability of the right answer, all its tokens); null where items offer choices. */
  readonly perplexity: number | null;
  readonly seconds: number;
}

/** Accuracy of a model on a task's items. Throws a UsageError for an item that the model's context cannot hold. */
export function evaluate(
  model: Model,
  task: Task,
  items: readonly Item[],
  options: EvaluateOptions = {},
): Promise<EvaluateResult> {
  const requests = items.map((item, i) => requestOf(model, item, i, options.bos ?? "never"));
  const context = Math.max(...requests.map(positionsOf));
  return model.exclusively(async () => {
    const started = performance.now();
    const { chunk, reading } = model.runner;
    // Past its border a rope turns all positions of a long item otherwise: such items go alone.
    const alone = model.spec.ropes.some(({ border }) => (border ?? Infinity) < context);
    const sequences = alone ? 1 : Math.min(SEQUENCES, items.length);
    const runner = new Runner(model.spec, model.weights, model.backend, {
      sequences,
      context,
      chunk,
      reading,
    });
    try {
      const scores = await scoreRequests(runner, requests, {
        onProgress: (done) => options.onProgress?.(done, items.length),
        signal: options.signal,
      });
      return { ...summarize(task, items, scores), seconds: (performance.now() - started) / 1000 };
    } finally {
      runner.dispose();
    }
  });
}

function requestOf(model: Model, item: Item, index: number, rule: BosRule): ScoreRequest {
  const { tokenizer, spec } = model;
  const pairs = item.continuations.map((text) => encodePair(tokenizer, item.context, text));
  const start = tokenizer.bosId ?? [...tokenizer.eosIds][0];
  const bos = bosBy(rule, tokenizer);
  let prefix = bos === undefined ? pairs[0].context : [bos, ...pairs[0].context];
  // As the harness does: an empty context still needs a token to predict from.
  if (prefix.length === 0 && start !== undefined) prefix = [start];
  const continuations = pairs.map(({ continuation }) => continuation);
  const longest = Math.max(...continuations.map(({ length }) => length));
  // Also the harness's: what does not fit is cut off at the beginning.
  prefix = prefix.slice(-Math.max(1, spec.contextLength + 1 - longest));
  if (
    prefix.length === 0 ||
    longest > spec.contextLength ||
    continuations.some(({ length }) => length === 0)
  ) {
    throw new UsageError(
      `item ${index + 1}: "${item.continuations[0].trim().slice(0, 40)}" cannot be scored: its answers take ` +
        `0 to ${longest} tokens, and this model takes 1 to ${spec.contextLength}; remove the item`,
    );
  }
  return { prefix, continuations };
}

function summarize(task: Task, items: readonly Item[], scores: readonly Score[][]) {
  const right = items.map(({ answer }, i) =>
    task.choice ? likeliest(scores[i].map((score) => score.logProbability)) === answer : scores[i][0].greedy,
  );
  const rightNormalized = items.map(
    ({ answer, lengths }, i) => likeliest(scores[i].map((s, c) => s.logProbability / lengths[c])) === answer,
  );
  const accuracy = share(right);
  const count = items.length;
  const loss = -scores.reduce((sum, [score]) => sum + score.logProbability, 0) / count;
  return {
    task: task.name,
    items: count,
    accuracy,
    accuracyNormalized: task.choice ? share(rightNormalized) : null,
    standardError: count > 1 ? Math.sqrt((accuracy * (1 - accuracy)) / (count - 1)) : 0,
    perplexity: task.choice ? null : Math.exp(loss),
  };
}

/** Index of the largest, the first of equals. */
function likeliest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

function share(right: readonly boolean[]): number {
  return right.filter(Boolean).length / right.length;
}
