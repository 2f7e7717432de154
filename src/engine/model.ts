/**
 * A loaded model: text in, text out.
 *
 * @module
 */
import type { Backend } from "../backends/backend.ts";
import type { ActivationPrecision, KeyValueType } from "../backends/operation.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { openResidual, type ResidualPlace } from "../compensation/residualFile.ts";
import {
  type CompensationSettings,
  checkSettings,
  DEFAULT_CHANNELS,
  type TunedSettings,
  uniformShares,
} from "../compensation/settings.ts";
import { UsageError } from "../errors.ts";
import type { DecoderSpec } from "../models/decoder.ts";
import { decoderFor } from "../models/registry.ts";
import { DEFAULT_CACHE, keyValueTypes } from "../ops/attention/keyValue.ts";
import { Speculation } from "../speculation/speculation.ts";
import { applyChatTemplate, type ChatMessage } from "../text/chatTemplate.ts";
import { createTokenizer, type Tokenizer } from "../text/tokenizer.ts";
import { type GenerateOptions, Generation } from "./generation.ts";
import { KeyValueCache } from "./kvCache.ts";
import { Residuals } from "./residuals.ts";
import { Runner } from "./runner.ts";
import { type FloatScheme, type LoadedWeights, linearSpecs, loadWeights, tieMissingHead } from "./weights.ts";

/** Context used when the model allows more and nobody asks: enough for chat, little address space. */
const DEFAULT_CONTEXT = 8192;
const DEFAULT_CHUNK = 64;
/** Float weights above this are kept as halfs: the backend's memory ends at 4 GB. */
const HALF_ABOVE_BYTES = 3e9;

export interface ModelOptions {
  /** Positions of the KV cache; default the model's own, at most 8192. */
  readonly context?: number;
  /** Most prompt tokens in one step. Default 64. */
  readonly chunk?: number;
  /** Sequences decoded side by side. Default 1. */
  readonly sequences?: number;
  /** How products with quantized weights read activations. Default `int8`. */
  readonly activations?: ActivationPrecision;
  /** Whether and how a quantized model that came with its residual is compensated. Default: as it says itself. */
  readonly compensation?: false | CompensationOptions;
  /** How keys and values are held. Default `f32`. */
  readonly kvCache?: KeyValueType;
  /** How float weights are kept; default float32, halfs for models over 3 GB. */
  readonly floats?: FloatScheme;
}

export interface CompensationOptions extends Partial<CompensationSettings>, ResidualPlace {
  /** What was tuned for layers of this kind, see {@link layersKey}: taken where nothing is given. */
  readonly tuned?: (layers: string) => TunedSettings | undefined;
}

export class Model {
  readonly spec: DecoderSpec;
  readonly source: string;
  readonly backend: Backend;
  readonly weights: LoadedWeights;
  readonly runner: Runner;
  readonly speculation: Speculation;
  readonly #checkpoint: Pick<Checkpoint, "tokenizer" | "generationConfig">;
  #tokenizer: Tokenizer | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    spec: DecoderSpec,
    checkpoint: Checkpoint,
    backend: Backend,
    weights: LoadedWeights,
    options: ModelOptions,
  ) {
    this.spec = spec;
    this.source = checkpoint.source;
    this.backend = backend;
    this.weights = weights;
    const { tokenizer, generationConfig } = checkpoint;
    this.#checkpoint = { tokenizer, generationConfig };
    this.runner = new Runner(spec, weights, backend, {
      sequences: options.sequences ?? 1,
      context: contextOf(spec, options.context),
      chunk: options.chunk ?? DEFAULT_CHUNK,
      cacheType: cacheTypeOf(options.kvCache),
      reading: {
        activations: options.activations ?? "int8",
        ...(weights.residuals && { compensation: settingsOf(options.compensation, weights.residuals) }),
      },
    });
    this.speculation = new Speculation(this.runner);
  }

  /** Loads a checkpoint into a backend, which the model then owns. The checkpoint may be closed afterwards. */
  static async load(checkpoint: Checkpoint, backend: Backend, options: ModelOptions = {}): Promise<Model> {
    const { source, config, tensors } = checkpoint;
    const spec = tieMissingHead(decoderFor(source, config, tensors), checkpoint);
    const weights = await loadWeights(spec, checkpoint, backend, options.floats ?? floatSchemeFor(spec));
    const { compensation = {} } = options;
    const file = compensation && (await openResidual(checkpoint, spec, compensation));
    if (!file) return new Model(spec, checkpoint, backend, weights, options);
    try {
      const residuals = await Residuals.load(file, backend);
      return new Model(spec, checkpoint, backend, { ...weights, residuals }, options);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Positions that a sequence may have. */
  get context(): number {
    return this.runner.cache.capacity;
  }

  get hasChatTemplate(): boolean {
    return this.#checkpoint.tokenizer?.chatTemplate !== undefined;
  }

  get cacheBytesPerToken(): number {
    return KeyValueCache.bytesPerPosition(this.spec, this.runner.cache.type);
  }

  /** Throws a UsageError when the checkpoint came without a tokenizer. */
  get tokenizer(): Tokenizer {
    const files = this.#checkpoint.tokenizer;
    if (!files)
      throw new UsageError(`${this.source}: has no tokenizer; put tokenizer.json beside its weights`);
    this.#tokenizer ??= createTokenizer(files, this.#checkpoint.generationConfig);
    return this.#tokenizer;
  }

  /** Token ids of a text to continue, beginning as the tokenizer's config says. */
  encodePrompt(text: string): number[] {
    return this.tokenizer.encode(text, { addSpecialTokens: true, parseSpecialTokens: true });
  }

  /** Token ids of a conversation, ready for the assistant's answer. Throws a UsageError without a chat template. */
  encodeChat(messages: readonly ChatMessage[]): number[] {
    const { tokenizer } = this;
    const config = this.#checkpoint.tokenizer!.config;
    const text = applyChatTemplate(this.#checkpoint.tokenizer!.chatTemplate, messages, {
      addGenerationPrompt: true,
      bosToken: typeof config.bos_token === "string" ? config.bos_token : undefined,
      eosToken: typeof config.eos_token === "string" ? config.eos_token : undefined,
    });
    return tokenizer.encode(text);
  }

  /**
   * Generates from a text (continued as it is), a conversation (through the chat template) or token ids.
   * Pieces of text come out as they are final; `result` settles at the end.
   *
   * @example
   * for await (const text of model.generate([{ role: "user", content: "Hello!" }])) process.stdout.write(text);
   */
  generate(
    prompt: string | readonly ChatMessage[] | readonly number[],
    options: GenerateOptions = {},
  ): Generation {
    return new Generation(this, this.#promptIds(prompt), options);
  }

  /** Runs `work` when everything asked for before is done: there is one cache. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Frees the model and its backend's threads. */
  dispose(): void {
    void this.weights.residuals?.close();
    this.backend.dispose();
  }

  #promptIds(prompt: string | readonly ChatMessage[] | readonly number[]): number[] {
    if (typeof prompt === "string") return this.encodePrompt(prompt);
    if (prompt.length > 0 && typeof prompt[0] === "number") return [...(prompt as readonly number[])];
    return this.encodeChat(prompt as readonly ChatMessage[]);
  }
}

/** How float weights are kept when nobody asks: float32 where they fit, else halfs. */
export function floatSchemeFor(spec: DecoderSpec): FloatScheme {
  return parametersOf(spec) * 4 > HALF_ABOVE_BYTES ? "f16" : "f32";
}

/** Weights of linear layers, embedding and head, tied ones once. */
export function parametersOf(spec: DecoderSpec): number {
  const ends = spec.head === spec.embedding ? [spec.embedding] : [spec.embedding, spec.head];
  return [...linearSpecs(spec), ...ends].reduce((sum, { rows, columns }) => sum + rows * columns, 0);
}

function settingsOf(options: ModelOptions["compensation"], residuals: Residuals): CompensationSettings {
  const { channels, select = "exact", readers, tuned } = options || {};
  const found = tuned?.(residuals.key);
  const usual = uniformShares(DEFAULT_CHANNELS);
  return checkSettings({
    channels: channels ?? found?.channels ?? residuals.channels ?? usual,
    select,
    readers: readers ?? found?.readers,
  });
}

function cacheTypeOf(asked: KeyValueType = DEFAULT_CACHE): KeyValueType {
  if (keyValueTypes.includes(asked)) return asked;
  throw new UsageError(`kvCache is ${JSON.stringify(asked)}: give one of ${keyValueTypes.join(", ")}`);
}

function contextOf(spec: DecoderSpec, asked: number | undefined): number {
  if (asked === undefined) return Math.min(spec.contextLength, DEFAULT_CONTEXT);
  if (!Number.isInteger(asked) || asked < 1 || asked > spec.contextLength) {
    throw new UsageError(`context ${asked}: this model takes 1 to ${spec.contextLength} tokens`);
  }
  return asked;
}
