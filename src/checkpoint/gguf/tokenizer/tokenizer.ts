import { CheckpointError, UnsupportedError } from "../../../errors.ts";
import type { TokenizerFiles } from "../../checkpoint.ts";
import type { Settings } from "../settings.ts";
import { mergesFromScores } from "./merges.ts";
import { preTokenizer } from "./preTokenizers.ts";
import {
  addedTokens,
  isSpecial,
  readVocabulary,
  TokenType,
  type Vocabulary,
  vocabObject,
} from "./vocabulary.ts";

/** A tokenizer.json without its added tokens and post-processor, and llama.cpp's defaults for its kind. */
interface Kind {
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  readonly decoder: unknown;
  readonly model: Record<string, unknown>;
  readonly addBos: boolean;
  readonly addEos: boolean;
}

const SPACE = "▁";

/** The embedded tokenizer as Hugging Face files; undefined when the file has none. */
export function readTokenizer(settings: Settings): TokenizerFiles | undefined {
  const model = settings.string("tokenizer.ggml.model");
  if (model === undefined || model === "none" || model === "no_vocab") return undefined;
  const vocabulary = readVocabulary(settings);
  const kind = kindOf(model, settings, vocabulary);
  const tokenOf = (role: string) => {
    const key = `tokenizer.ggml.${role}_token_id`;
    const id = settings.integer(key);
    if (id === undefined) return undefined;
    if (id >= vocabulary.tokens.length) {
      throw new CheckpointError(
        settings.file,
        `${key} is ${id}, there are ${vocabulary.tokens.length} tokens`,
      );
    }
    return { id, token: vocabulary.tokens[id] };
  };
  const bos = tokenOf("bos");
  const eos = tokenOf("eos");
  const addBos = bos !== undefined && (settings.boolean("tokenizer.ggml.add_bos_token") ?? kind.addBos);
  const addEos = eos !== undefined && (settings.boolean("tokenizer.ggml.add_eos_token") ?? kind.addEos);
  const { normalizer, pre_tokenizer, decoder } = kind;
  const config: Record<string, unknown> = {
    tokenizer_class: "PreTrainedTokenizerFast",
    add_bos_token: addBos,
    add_eos_token: addEos,
    clean_up_tokenization_spaces: false,
  };
  for (const [name, role] of Object.entries({ bos, eos, unk: tokenOf("unknown"), pad: tokenOf("padding") })) {
    if (role !== undefined) config[`${name}_token`] = role.token;
  }
  return {
    tokenizer: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: addedTokens(vocabulary, rightStripping(settings)),
      normalizer,
      pre_tokenizer,
      post_processor: template(addBos ? bos : undefined, addEos ? eos : undefined),
      decoder,
      model: kind.model,
    },
    config,
    chatTemplate: settings.string("tokenizer.chat_template"),
  };
}

function kindOf(model: string, settings: Settings, vocabulary: Vocabulary): Kind {
  switch (model) {
    case "gpt2":
      return byteLevelBpe(settings, vocabulary);
    case "llama":
      return sentencePieceBpe(settings, vocabulary);
    case "t5":
      return unigram(settings, vocabulary);
    default:
      throw new UnsupportedError(
        `${settings.file}: tokenizer ${JSON.stringify(model.slice(0, 40))}; gpt2, llama and t5 are supported`,
      );
  }
}

function byteLevelBpe(settings: Settings, vocabulary: Vocabulary): Kind {
  const pre = preTokenizer(settings.string("tokenizer.ggml.pre") ?? "default", settings.file);
  const merges = settings
    .required(settings.strings("tokenizer.ggml.merges"), "tokenizer.ggml.merges")
    .map((merge) => {
      // The left part is never empty, so a leading space belongs to it.
      const cut = merge.indexOf(" ", 1);
      if (cut < 0 || cut === merge.length - 1) {
        throw new CheckpointError(
          settings.file,
          `tokenizer.ggml.merges: ${JSON.stringify(merge.slice(0, 40))} is no pair`,
        );
      }
      return [merge.slice(0, cut), merge.slice(cut + 1)];
    });
  return {
    normalizer: null,
    pre_tokenizer: pre.json,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: bpeModel(vocabulary, merges, {
      ignore_merges: pre.ignoreMerges,
      byte_fallback: false,
      unk_token: null,
    }),
    addBos: pre.addBos,
    addEos: false,
  };
}

function sentencePieceBpe(settings: Settings, vocabulary: Vocabulary): Kind {
  const prefix = settings.boolean("tokenizer.ggml.add_space_prefix") ?? true;
  const escaping = { type: "Replace", pattern: { String: " " }, content: SPACE };
  const unknown = Array.prototype.indexOf.call(vocabulary.types, TokenType.unknown);
  const options = {
    ignore_merges: false,
    byte_fallback: true,
    fuse_unk: true,
    unk_token: unknown < 0 ? null : vocabulary.tokens[unknown],
  };
  return {
    normalizer: prefix
      ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: SPACE }, escaping] }
      : { type: "Sequence", normalizers: [escaping] },
    pre_tokenizer: wordSplit(vocabulary),
    decoder: sentencePieceDecoder(prefix),
    model: bpeModel(vocabulary, mergesFromScores(vocabulary), options),
    addBos: true,
    addEos: false,
  };
}

/**
 * Words apart where no token crosses from text into a following space: the merges cannot cross either, so
 * the tokens are the same, found in time linear in the text.
 */
function wordSplit({ tokens, types }: Vocabulary): unknown {
  const crosses = tokens.some((token, id) => !isSpecial(types[id]) && /[^▁]▁/u.test(token));
  if (crosses) return null;
  return { type: "Split", pattern: { Regex: "▁*[^▁]+|▁+" }, behavior: "Isolated", invert: false };
}

function unigram(settings: Settings, vocabulary: Vocabulary): Kind {
  const { tokens, scores } = vocabulary;
  const list = settings.required(scores, "tokenizer.ggml.scores");
  const prefix = settings.boolean("tokenizer.ggml.add_space_prefix") ?? true;
  const squeeze = settings.boolean("tokenizer.ggml.remove_extra_whitespaces") ?? false;
  const normalizers: unknown[] = [];
  // The file's compiled table is NFKC with additions that this stands for.
  if (settings.has("tokenizer.ggml.precompiled_charsmap")) normalizers.push({ type: "NFKC" });
  if (squeeze) {
    normalizers.push({ type: "Strip", strip_left: true, strip_right: true });
    normalizers.push({ type: "Replace", pattern: { Regex: " {2,}" }, content: " " });
  }
  const metaspace = {
    type: "Metaspace",
    replacement: SPACE,
    prepend_scheme: prefix ? "always" : "never",
    split: false,
  };
  const words = wordSplit(vocabulary);
  return {
    normalizer: normalizers.length === 0 ? null : { type: "Sequence", normalizers },
    pre_tokenizer: { type: "Sequence", pretokenizers: words === null ? [metaspace] : [metaspace, words] },
    decoder: sentencePieceDecoder(prefix),
    model: {
      type: "Unigram",
      unk_id: settings.integer("tokenizer.ggml.unknown_token_id") ?? 0,
      vocab: tokens.map((token, id) => [token, list[id]]),
      byte_fallback: false,
    },
    addBos: false,
    addEos: true,
  };
}

function sentencePieceDecoder(prefix: boolean): unknown {
  const strip = prefix ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : [];
  const unescaping = { type: "Replace", pattern: { String: SPACE }, content: " " };
  return { type: "Sequence", decoders: [unescaping, { type: "ByteFallback" }, { type: "Fuse" }, ...strip] };
}

function bpeModel(vocabulary: Vocabulary, merges: string[][], options: Record<string, unknown>) {
  return {
    type: "BPE",
    dropout: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    ...options,
    vocab: vocabObject(vocabulary),
    merges,
  };
}

interface Role {
  readonly id: number;
  readonly token: string;
}

function template(bos: Role | undefined, eos: Role | undefined): unknown {
  const special = (role: Role | undefined) =>
    role === undefined ? [] : [{ SpecialToken: { id: role.token, type_id: 0 } }];
  const text = (id: string) => ({ Sequence: { id, type_id: 0 } });
  const entry = (role: Role) => [role.token, { id: role.token, ids: [role.id], tokens: [role.token] }];
  return {
    type: "TemplateProcessing",
    single: [...special(bos), text("A"), ...special(eos)],
    pair: [...special(bos), text("A"), ...special(eos), ...special(bos), text("B"), ...special(eos)],
    special_tokens: Object.fromEntries([bos, eos].filter((role) => role !== undefined).map(entry)),
  };
}

/** Phi-3's special tokens swallow the space after them, except those that begin a text. */
function rightStripping(settings: Settings): (token: string) => boolean {
  if (!/phi-?3/i.test(settings.string("general.name") ?? "")) return () => false;
  return (token) => !["<unk>", "<s>", "<|endoftext|>"].includes(token);
}
