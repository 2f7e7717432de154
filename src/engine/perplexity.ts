/**
 * Perplexity of a text in windows, each from an empty cache (llama.cpp's and GPTQ's habit).
 *
 * @module
 */
import { UsageError } from "../errors.ts";
import { type BosRule, bosBy } from "../text/bos.ts";
import { breather } from "./breathe.ts";
import { type Agreement, AgreementMeter } from "./evaluate/agreement.ts";
import { summarizeRow } from "./evaluate/softmax.ts";
import type { Model } from "./model.ts";

export interface PerplexityOptions {
  /** Tokens per window, the beginning-of-sequence token included. Default 512. */
  readonly context?: number;
  /** Windows to evaluate; default all whole ones. */
  readonly windows?: number;
  /** Starts every window with the beginning-of-sequence token: as the tokenizer's config says, or regardless. */
  readonly bos?: BosRule;
  /** Another model with the same tokens: the result then says how far this one's predictions are from its. */
  readonly against?: Model;
  readonly onProgress?: (done: number, total: number, perplexity: number) => void;
  readonly signal?: AbortSignal;
}

/** With {@link Agreement}'s figures where another model was given. */
export interface PerplexityResult extends Partial<Agreement> {
  readonly perplexity: number;
  /** Bits needed per byte of the scored text. */
  readonly bitsPerByte: number;
  /** Scored predictions. */
  readonly tokens: number;
  readonly windows: number;
  readonly context: number;
  readonly bos: boolean;
  readonly seconds: number;
}

/** Cuts token ids into windows: consecutive ones of `context`, or BOS and `context - 1` of them. */
export function windowsOf(ids: readonly number[], context: number, bos: number | undefined): number[][] {
  const step = bos === undefined ? context : context - 1;
  const windows: number[][] = [];
  for (let at = 0; at + step <= ids.length; at += step) {
    const part = ids.slice(at, at + step);
    windows.push(bos === undefined ? part : [bos, ...part]);
  }
  return windows;
}

/**
 * The perplexity of a text. Throws a UsageError when it is shorter than one window, or when `against` cannot
 * be compared.
 */
export function perplexity(
  model: Model,
  text: string,
  options: PerplexityOptions = {},
): Promise<PerplexityResult> {
  const {
    context = 512,
    bos: wanted = "auto",
    windows: most = Infinity,
    onProgress,
    signal,
    against,
  } = options;
  const { tokenizer, spec } = model;
  if (!Number.isInteger(context) || context < 2 || context > model.context) {
    throw new UsageError(`context ${context}: this model takes windows of 2 to ${model.context} tokens`);
  }
  const bos = bosBy(wanted, tokenizer);
  const ids = tokenizer.encode(text);
  const windows = windowsOf(ids, context, bos).slice(0, most);
  if (windows.length === 0) {
    throw new UsageError(
      `the text is shorter than one window of ${context} tokens; give more text or a smaller --context`,
    );
  }
  if (against) checkComparable(model, against, text, ids, context);
  const meter = against && new AgreementMeter(spec.vocabularySize);
  const chunk = Math.min(model.runner.chunk, against?.runner.chunk ?? Infinity);
  const score = async () => {
    const started = performance.now();
    const breathe = breather();
    let [loss, tokens, bytes] = [0, 0, 0];
    for (const [w, window] of windows.entries()) {
      for (let at = 0; at < context - 1; at += chunk) {
        signal?.throwIfAborted();
        const ids = window.slice(at, Math.min(at + chunk, context - 1));
        const input = { ids, positions: ids.map((_, i) => at + i), length: context };
        const logits = await model.runner.step(input, "all");
        for (let i = 0; i < ids.length; i++) {
          const row = i * spec.vocabularySize;
          const next = window[at + i + 1];
          loss += summarizeRow(logits, row, spec.vocabularySize).logSum - logits[row + next];
          bytes += tokenizer.tokenBytes(next).length;
          tokens++;
        }
        if (against) meter?.add(logits, await against.runner.step(input, "all"));
        await breathe();
      }
      onProgress?.(w + 1, windows.length, Math.exp(loss / tokens));
    }
    return {
      perplexity: Math.exp(loss / tokens),
      bitsPerByte: loss / Math.LN2 / Math.max(1, bytes),
      ...meter?.result(),
      tokens,
      windows: windows.length,
      context,
      bos: bos !== undefined,
      seconds: (performance.now() - started) / 1000,
    };
  };
  return model.exclusively(() => (against ? against.exclusively(score) : score()));
}

function checkComparable(
  model: Model,
  against: Model,
  text: string,
  ids: readonly number[],
  context: number,
): void {
  if (against === model) throw new UsageError("a model cannot be compared with itself; load it twice");
  if (context > against.context) {
    throw new UsageError(`context ${context}: ${against.source} takes at most ${against.context} tokens`);
  }
  const other = against.tokenizer.encode(text);
  const same = other.length === ids.length && ids.every((id, i) => id === other[i]);
  if (!same || against.spec.vocabularySize !== model.spec.vocabularySize) {
    throw new UsageError(
      `${model.source} and ${against.source} have different tokens; compare a model with copies of itself`,
    );
  }
}
