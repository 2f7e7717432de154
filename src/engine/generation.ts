import { UsageError } from "../errors.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import type { Speculation, SpeculationOptions } from "../speculation/speculation.ts";
import type { SpeculationStatistics } from "../speculation/statistics.ts";
import { createDetokenizer } from "../text/detokenizer.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { breather } from "./breathe.ts";
import { prefill } from "./prefill.ts";
import { crossesBorder, roomBeforeBorder } from "./ropeBorders.ts";
import type { Runner } from "./runner.ts";
import type { SamplerOptions } from "./sampler/options.ts";
import { createSampler } from "./sampler/sampler.ts";
import { createStopMatcher } from "./stopStrings.ts";

/** Greedy unless a temperature is given. */
export interface GenerateOptions extends SamplerOptions, SpeculationOptions {
  /** Most tokens to generate; default what the context leaves. */
  readonly maxTokens?: number;
  /** Texts that end the answer; they are not part of it. */
  readonly stop?: readonly string[];
  /** Goes on after the model's end tokens. Default false. */
  readonly ignoreEos?: boolean;
  /** Ends the answer early; what was generated so far stands. */
  readonly signal?: AbortSignal;
}

export interface GenerationResult {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly finishReason: "stop" | "length" | "abort";
  /** Seconds from the call to the first token. */
  readonly timeToFirstToken: number;
  /** Prompt tokens per second. */
  readonly promptTokensPerSecond: number;
  /** Generated tokens per second after the first. */
  readonly tokensPerSecond: number;
  /** How drafting went; absent when it was off. */
  readonly speculation?: SpeculationStatistics;
}

/** What an answer needs of its model. */
interface AnsweringModel {
  readonly spec: DecoderSpec;
  readonly context: number;
  readonly runner: Runner;
  readonly tokenizer: Tokenizer;
  readonly speculation: Speculation;
  exclusively<T>(work: () => Promise<T>): Promise<T>;
}

/** An answer in the making: iterate for its text, await `result` for the whole. It runs once, when first asked. */
export class Generation implements AsyncIterable<string> {
  readonly #model: AnsweringModel;
  readonly #prompt: readonly number[];
  readonly #options: GenerateOptions;
  readonly #settle = withResolvers<GenerationResult>();
  #started = false;

  constructor(model: AnsweringModel, prompt: readonly number[], options: GenerateOptions) {
    checkPrompt(model, prompt, options);
    this.#model = model;
    this.#prompt = prompt;
    this.#options = options;
    this.#settle.promise.catch(() => undefined);
  }

  /** The whole answer; runs it when nobody iterates. */
  get result(): Promise<GenerationResult> {
    if (!this.#started) return this.#drain();
    return this.#settle.promise;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    if (this.#started) throw new UsageError("this answer is already being read; call generate() again");
    this.#started = true;
    const release = await this.#enter();
    try {
      const result = yield* this.#run();
      this.#settle.resolve(result);
    } catch (error) {
      this.#settle.reject(error);
      throw error;
    } finally {
      release();
      // The reader may leave early: whoever waits for the result must not wait forever.
      this.#settle.reject(new UsageError("the answer was abandoned before its end"));
    }
  }

  async #drain(): Promise<GenerationResult> {
    for await (const _ of this);
    return this.#settle.promise;
  }

  /** Waits for the model's turn; the returned function gives it up. */
  #enter(): Promise<() => void> {
    return new Promise((entered) => {
      void this.#model.exclusively(() => new Promise<void>((release) => entered(release)));
    });
  }

  async *#run(): AsyncGenerator<string, GenerationResult, undefined> {
    const { tokenizer, runner, context, spec } = this.#model;
    const { maxTokens = Infinity, stop = [], ignoreEos = false, signal, ...others } = this.#options;
    const { speculate = "auto", draft, ...sampling } = others;
    const prompt = this.#prompt;
    const sampler = createSampler({ temperature: 0, ...sampling });
    const repeatable = sampling.seed !== undefined && !sampler.greedy;
    const speculator = this.#model.speculation.speculator({ speculate, draft }, repeatable);
    const matcher = createStopMatcher(stop);
    const detokenizer = createDetokenizer(tokenizer);
    const limit = Math.min(maxTokens, context - prompt.length);
    const breathe = breather();
    const tokens: number[] = [];
    let text = "";
    let finishReason: GenerationResult["finishReason"] = "length";

    const next = async (): Promise<readonly number[]> => {
      const length = prompt.length + tokens.length;
      if (tokens.length === 0 || crossesBorder(spec, length)) {
        const logits = await prefill(runner, [...prompt, ...tokens], signal);
        return logits ? [sampler.sample(logits, { prompt, generated: tokens })] : [];
      }
      const room = Math.min(limit - tokens.length, roomBeforeBorder(spec, length));
      const [burst] = await speculator.burst([{ slot: 0, prompt, generated: tokens, room, sampler }]);
      return burst;
    };

    const started = performance.now();
    let firstAt: number | undefined;
    answer: while (tokens.length < limit && !signal?.aborted) {
      const burst = await next();
      firstAt ??= performance.now();
      for (const id of burst) {
        if (signal?.aborted) break answer;
        tokens.push(id);
        if (!ignoreEos && tokenizer.eosIds.has(id)) {
          finishReason = "stop";
          break answer;
        }
        const piece = matcher.push(detokenizer.push(id));
        text += piece.text;
        if (piece.text) yield piece.text;
        if (piece.stop !== undefined) {
          finishReason = "stop";
          break answer;
        }
      }
      await breathe();
    }
    firstAt ??= performance.now();
    const seconds = (performance.now() - firstAt) / 1000;
    const rest = matcher.push(detokenizer.flush()).text + matcher.flush();
    text += rest;
    if (rest) yield rest;
    const timeToFirstToken = (firstAt - started) / 1000;
    return {
      text,
      tokens,
      promptTokens: prompt.length,
      completionTokens: tokens.length,
      finishReason: signal?.aborted ? "abort" : finishReason,
      timeToFirstToken,
      promptTokensPerSecond: prompt.length / Math.max(timeToFirstToken, 1e-9),
      tokensPerSecond: tokens.length > 1 ? (tokens.length - 1) / Math.max(seconds, 1e-9) : 0,
      ...(speculate === "off" ? {} : { speculation: speculator.statistics }),
    };
  }
}

function checkPrompt(model: AnsweringModel, prompt: readonly number[], { maxTokens }: GenerateOptions): void {
  if (prompt.length === 0) throw new UsageError("the prompt is empty; give at least one token");
  if (prompt.length >= model.context) {
    throw new UsageError(
      `the prompt has ${prompt.length} tokens and the context ${model.context}; shorten the prompt or raise --context (this model: up to ${model.spec.contextLength})`,
    );
  }
  if (maxTokens !== undefined && !(maxTokens >= 1)) {
    throw new UsageError(`maxTokens is ${maxTokens}; give at least 1`);
  }
}

/** `Promise.withResolvers`, which Node 20 lacks. */
function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
