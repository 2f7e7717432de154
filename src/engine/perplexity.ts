/**
 * Perplexity of a text in windows, each from an empty cache (llama.cpp's and GPTQ's habit).
 *
 * @module
 */
import { UsageError } from "../errors.ts";
import type { Model } from "./model.ts";

export interface PerplexityOptions {
  /** Tokens per window, the beginning-of-sequence token included. Default 512. */
  readonly context?: number;
  /** Windows to evaluate; default all whole ones. */
  readonly windows?: number;
  /** Starts every window with the beginning-of-sequence token: as the tokenizer's config says, or regardless. */
  readonly bos?: "auto" | "always" | "never";
  readonly onProgress?: (done: number, total: number, perplexity: number) => void;
  readonly signal?: AbortSignal;
}

export interface PerplexityResult {
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

/** Natural-log probability that logits row `row` gives to `id`, negated. */
export function negativeLogLikelihood(
  logits: Float32Array,
  vocabulary: number,
  row: number,
  id: number,
): number {
  const at = row * vocabulary;
  let largest = -Infinity;
  for (let i = at; i < at + vocabulary; i++) if (logits[i] > largest) largest = logits[i];
  let sum = 0;
  for (let i = at; i < at + vocabulary; i++) sum += Math.exp(logits[i] - largest);
  return Math.log(sum) + largest - logits[at + id];
}

/** The perplexity of a text. Throws a UsageError when it is shorter than one window. */
export function perplexity(
  model: Model,
  text: string,
  options: PerplexityOptions = {},
): Promise<PerplexityResult> {
  const { context = 512, bos: wanted = "auto", windows: most = Infinity, onProgress, signal } = options;
  const { tokenizer, spec } = model;
  if (!Number.isInteger(context) || context < 2 || context > model.context) {
    throw new UsageError(`context ${context}: this model takes windows of 2 to ${model.context} tokens`);
  }
  const bos = wanted === "always" || (wanted === "auto" && tokenizer.addBos);
  if (bos && tokenizer.bosId === undefined) {
    throw new UsageError("this tokenizer has no beginning-of-sequence token; use --bos never");
  }
  const windows = windowsOf(tokenizer.encode(text), context, bos ? tokenizer.bosId : undefined).slice(
    0,
    most,
  );
  if (windows.length === 0) {
    throw new UsageError(
      `the text is shorter than one window of ${context} tokens; give more text or a smaller --context`,
    );
  }
  return model.exclusively(async () => {
    const started = performance.now();
    let [loss, tokens, bytes] = [0, 0, 0];
    for (const [w, window] of windows.entries()) {
      for (let at = 0; at < context - 1; at += model.runner.chunk) {
        signal?.throwIfAborted();
        const ids = window.slice(at, Math.min(at + model.runner.chunk, context - 1));
        const logits = await model.runner.step(
          { ids, positions: ids.map((_, i) => at + i), length: context },
          "all",
        );
        for (let i = 0; i < ids.length; i++) {
          const next = window[at + i + 1];
          loss += negativeLogLikelihood(logits, spec.vocabularySize, i, next);
          bytes += tokenizer.tokenBytes(next).length;
          tokens++;
        }
      }
      onProgress?.(w + 1, windows.length, Math.exp(loss / tokens));
    }
    return {
      perplexity: Math.exp(loss / tokens),
      bitsPerByte: loss / Math.LN2 / Math.max(1, bytes),
      tokens,
      windows: windows.length,
      context,
      bos,
      seconds: (performance.now() - started) / 1000,
    };
  });
}
