/**
 * Text to token ids and back, for any Hugging Face tokenizer of a generating model.
 *
 * Normalizers, pre-tokenizers and post-processors are `@huggingface/tokenizers`'; added tokens, the BPE
 * merges and decoding are ours, because theirs cannot leave special tokens unparsed, cannot tell a token's
 * bytes, and takes 9.5 s and 520 MB for 1.3 MB of text without pre-tokenization (ours 0.7 s and 95 MB).
 *
 * @module
 */

import { Tokenizer as Pipeline } from "@huggingface/tokenizers";
import type { TokenizerFiles } from "../checkpoint/checkpoint.ts";
import { CheckpointError, HalftoneError, UsageError } from "../errors.ts";
import { type AddedToken, createSplitter, readAddedTokens } from "./addedTokens.ts";
import { type BpeConfig, createBpe, type TokenModel } from "./bpe.ts";
import { rewritePreTokenizer } from "./preTokenizer.ts";
import { readBosId, readEosIds } from "./specialTokens.ts";
import { readSpelling } from "./tokenBytes.ts";

export interface EncodeOptions {
  /** Adds what the model's post-processor adds, usually the beginning-of-sequence token. Default false. */
  readonly addSpecialTokens?: boolean;
  /**
   * Reads `<|im_end|>` and the like as the token it names: right for the output of a chat template.
   * False spells it out in ordinary tokens: right for text from strangers. Default true.
   */
  readonly parseSpecialTokens?: boolean;
}

export interface DecodeOptions {
  /** Leaves special tokens out. Default false. */
  readonly skipSpecialTokens?: boolean;
}

export interface Tokenizer {
  encode(text: string, options?: EncodeOptions): number[];
  /**
   * The text of the tokens: their bytes read as UTF-8 (U+FFFD where they are none), less the space that
   * SentencePiece tokenizers put at the beginning. Spaces before punctuation are kept, whatever
   * `clean_up_tokenization_spaces` says: removing them spoils code.
   */
  decode(ids: Iterable<number>, options?: DecodeOptions): string;
  /**
   * The exact bytes that a token stands for; part of a character only, for some. Empty for an id that names
   * no token (models pad their vocabulary).
   *
   * @throws UsageError unless the id is a whole number from 0 on.
   */
  tokenBytes(id: number): Uint8Array;
  /** The id of a token as the vocabulary spells it. */
  tokenId(token: string): number | undefined;
  isSpecial(id: number): boolean;
  /** The largest id plus one. A model's logits may be wider (padding). */
  readonly vocabularySize: number;
  readonly bosId: number | undefined;
  /** Ids that end the generation. */
  readonly eosIds: ReadonlySet<number>;
  /** Whether the model expects the beginning-of-sequence token before a text. */
  readonly addBos: boolean;
  /** Whether a space at the beginning of decoded text is dropped (SentencePiece). */
  readonly dropsLeadingSpace: boolean;
}

const LARGEST_ID = 2 ** 24;

/**
 * Builds the tokenizer of a checkpoint.
 *
 * @throws CheckpointError when tokenizer.json is inconsistent, UnsupportedError for kinds that generating
 * models do not use (see `readSpelling`, `rewritePreTokenizer`).
 */
export function createTokenizer(
  files: TokenizerFiles,
  generationConfig: Readonly<Record<string, unknown>> = {},
): Tokenizer {
  const { tokenizer: json, config } = files;
  const model = objectOf(json.model, "model");
  const added = readAddedTokens(json.added_tokens);
  const { vocabulary, tokens } = readVocabulary(model, added);
  const addedIds = new Map(added.map((token) => [token.content, token.id]));
  const tokenId: TokenId = (token) => addedIds.get(token) ?? vocabulary.get(token);
  const pipeline = createPipeline(json, config, isPlainBpe(model));
  const tokenModel = isPlainBpe(model)
    ? createBpe(model as unknown as BpeConfig, vocabulary)
    : libraryModel(pipeline, tokenId);
  const spelling = readSpelling(json.decoder);
  const utf8 = new TextEncoder();

  const addedById = new Map(added.map((token) => [token.id, token]));
  const specials = new Map(added.filter((token) => token.special).map((token) => [token.content, token.id]));
  const splitters = new Map(
    [true, false].map((parse) => [
      parse,
      createSplitters(
        pipeline,
        added.filter((token) => parse || !token.special),
      ),
    ]),
  );
  const bosId = readBosId(config, generationConfig, tokenId);
  const { prefix, suffix, addBos } = readFrame(pipeline, config, bosId, tokenId);

  function encode(text: string, options: EncodeOptions = {}): number[] {
    const { literal, normalized } = splitters.get(options.parseSpecialTokens ?? true)!;
    const ids: number[] = options.addSpecialTokens ? [...prefix] : [];
    for (const section of literal(text)) {
      if (section.token) {
        ids.push(section.token.id);
        continue;
      }
      const plain = pipeline.normalizer ? (pipeline.normalizer as Normalize)(section.text) : section.text;
      for (const piece of normalized(plain)) {
        if (piece.token) ids.push(piece.token.id);
        else encodePlain(piece.text, section.start + piece.start, ids);
      }
    }
    if (options.addSpecialTokens) for (const id of suffix) ids.push(id);
    return ids;
  }

  function encodePlain(text: string, offset: number, ids: number[]): void {
    // The library's Metaspace puts its prefix before section 0 where the scheme is "first".
    const split = pipeline.pre_tokenizer as PreTokenize | null;
    const words = split ? split(text, { section_index: offset === 0 ? 0 : 1 }) : [text];
    for (const word of words) tokenModel.encode(word, ids);
  }

  function tokenBytes(id: number): Uint8Array {
    if (!Number.isInteger(id) || id < 0)
      throw new UsageError(`token id ${id}: give a whole number from 0 on`);
    const special = addedById.get(id);
    if (special) return utf8.encode(special.content);
    const token = tokens.get(id);
    return token === undefined ? new Uint8Array(0) : spelling.bytesOf(token);
  }

  function isSpecial(id: number): boolean {
    return addedById.get(id)?.special === true;
  }

  function decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    const reader = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (const id of ids) {
      if (!(options.skipSpecialTokens && isSpecial(id)))
        text += reader.decode(tokenBytes(id), { stream: true });
    }
    text += reader.decode();
    return spelling.dropsLeadingSpace && text.startsWith(" ") ? text.slice(1) : text;
  }

  return {
    encode,
    decode,
    tokenBytes,
    tokenId,
    isSpecial,
    vocabularySize: largest(tokens.keys()) + 1,
    bosId,
    eosIds: readEosIds(config, generationConfig, tokenId, specials),
    addBos,
    dropsLeadingSpace: spelling.dropsLeadingSpace,
  };
}

type Config = Record<string, unknown>;
type TokenId = (token: string) => number | undefined;
type Normalize = (text: string) => string;
type PreTokenize = (text: string, options: { section_index: number }) => string[];
type PostProcess = (tokens: string[], pair: null, addSpecialTokens: boolean) => { tokens: string[] };

function objectOf(value: unknown, name: string): Config {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Config;
  throw new CheckpointError("tokenizer.json", `${name} is not an object`);
}

/** A BPE whose symbols are plain characters; the rare kinds with word affixes go through the library. */
function isPlainBpe(model: Config): boolean {
  const isBpe = model.type === "BPE" || (model.type === undefined && Array.isArray(model.merges));
  return (
    isBpe && Array.isArray(model.merges) && !model.continuing_subword_prefix && !model.end_of_word_suffix
  );
}

/** The model's own vocabulary (BPE must not see added tokens), and all tokens by id. */
function readVocabulary(model: Config, added: readonly AddedToken[]) {
  const entries: [string, number][] = Array.isArray(model.vocab)
    ? model.vocab.map((entry, id) => [Array.isArray(entry) ? entry[0] : entry, id])
    : Object.entries(objectOf(model.vocab, "model.vocab") as Record<string, number>);
  const vocabulary = new Map<string, number>();
  const tokens = new Map<number, string>();
  for (const [token, id] of entries) {
    check(token, id);
    vocabulary.set(token, id);
    tokens.set(id, token);
  }
  for (const { content, id } of added) {
    check(content, id);
    tokens.set(id, content);
  }
  if (tokens.size === 0) throw new CheckpointError("tokenizer.json", "the vocabulary is empty");
  return { vocabulary, tokens };
}

function check(token: unknown, id: unknown): void {
  if (
    typeof token === "string" &&
    Number.isInteger(id) &&
    (id as number) >= 0 &&
    (id as number) <= LARGEST_ID
  )
    return;
  throw new CheckpointError(
    "tokenizer.json",
    `token ${JSON.stringify(token)} has the id ${JSON.stringify(id)}`,
  );
}

function createPipeline(json: Config, config: Config, ownModel: boolean): Pipeline {
  try {
    return new Pipeline(
      {
        normalizer: json.normalizer ?? null,
        pre_tokenizer: rewritePreTokenizer(json.pre_tokenizer),
        post_processor: json.post_processor ?? null,
        model: ownModel ? { type: "BPE", vocab: {}, merges: [] } : json.model,
        decoder: null,
        added_tokens: [],
      },
      config,
    );
  } catch (error) {
    if (error instanceof HalftoneError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CheckpointError("tokenizer.json", `cannot be used (${reason})`, { cause: error });
  }
}

function libraryModel(pipeline: Pipeline, tokenId: TokenId): TokenModel {
  const model = pipeline.model as unknown as ((words: string[]) => string[]) & { unk_token_id?: number };
  return {
    encode(word, ids) {
      for (const token of model([word])) {
        const id = tokenId(token) ?? model.unk_token_id;
        if (id !== undefined) ids.push(id);
      }
    },
  };
}

function createSplitters(pipeline: Pipeline, added: readonly AddedToken[]) {
  const normalizer = pipeline.normalizer as Normalize | null;
  return {
    literal: createSplitter(added.filter((token) => !token.normalized)),
    normalized: createSplitter(
      added.filter((token) => token.normalized),
      (token) => (normalizer ? normalizer(token.content) : token.content),
    ),
  };
}

/**
 * What goes around a text: whatever the post-processor puts there, except that an explicit
 * `add_bos_token` decides about the beginning-of-sequence token.
 */
function readFrame(pipeline: Pipeline, config: Config, bosId: number | undefined, tokenId: TokenId) {
  const body = "\u0000body";
  const process = pipeline.post_processor as PostProcess | null;
  const framed = process ? process([body], null, true).tokens : [body];
  const at = framed.indexOf(body);
  const idsOf = (tokens: string[]) =>
    tokens.map((token) => {
      const id = tokenId(token);
      if (id !== undefined) return id;
      throw new CheckpointError(
        "tokenizer.json",
        `post_processor adds ${JSON.stringify(token)}, which is not in the vocabulary`,
      );
    });
  let prefix = idsOf(framed.slice(0, at));
  const suffix = idsOf(framed.slice(at + 1));
  const addBos =
    bosId !== undefined &&
    (typeof config.add_bos_token === "boolean" ? config.add_bos_token : prefix.includes(bosId));
  if (addBos && !prefix.includes(bosId)) prefix = [bosId, ...prefix];
  if (!addBos) prefix = prefix.filter((id) => id !== bosId);
  return { prefix, suffix, addBos };
}

function largest(ids: Iterable<number>): number {
  let result = 0;
  for (const id of ids) result = Math.max(result, id);
  return result;
}
