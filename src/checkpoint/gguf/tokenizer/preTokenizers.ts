/**
 * The splits that `tokenizer.ggml.pre` stands for: regular expressions applied one after the other,
 * each to what the ones before left in one piece. They are part of the tokenizers' definitions.
 *
 * @module
 */
import { UnsupportedError } from "../../../errors.ts";

const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";
const CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const llama3Like = (numbers: string) =>
  `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${numbers}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`;
/** Words in camel case apart; letters outside ASCII count as upper and as lower case. */
const cased = (suffix: string, numbers: string) =>
  `[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}])([^a-z]))*((?=[\\p{L}])([^A-Z]))+${suffix}` +
  `|[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}])([^a-z]))+((?=[\\p{L}])([^A-Z]))*${suffix}` +
  `|${numbers}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`;

const gpt2 = [GPT2];
const digitsThenGpt2 = ["\\p{N}", GPT2];
const llama3 = [llama3Like("\\p{N}{1,3}")];
const qwen2 = [llama3Like("\\p{N}")];
const CJK = "[一-龥ࠀ-一가-퟿]+";

const SPLITS: Readonly<Record<string, readonly string[]>> = {
  default: ["[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"],
  falcon: ["[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"],
  "gpt-2": gpt2,
  mpt: gpt2,
  olmo: gpt2,
  "phi-2": gpt2,
  jais: gpt2,
  starcoder: digitsThenGpt2,
  refact: digitsThenGpt2,
  "command-r": digitsThenGpt2,
  smollm: digitsThenGpt2,
  codeshell: digitsThenGpt2,
  exaone: digitsThenGpt2,
  minerva: digitsThenGpt2,
  "minerva-7b": digitsThenGpt2,
  "llama-bpe": llama3,
  llama3,
  "llama-v3": llama3,
  "smaug-bpe": llama3,
  dbrx: llama3,
  smollm3: llama3,
  "chatglm-bpe": llama3,
  falcon3: llama3,
  lfm2: llama3,
  qwen2,
  "deepseek-r1-qwen": qwen2,
  stablelm2: qwen2,
  hunyuan: qwen2,
  "deepseek-llm": [
    "[\r\n]",
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
    "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
    "\\s+$",
    CJK,
    "\\p{N}+",
  ],
  "deepseek-coder": ["[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"],
  "deepseek-v3": [
    "\\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" +
      "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
  ],
  tekken: [cased("", "\\p{N}")],
  "gpt-4o": [cased(`${CONTRACTIONS}?`, "\\p{N}{1,3}")],
  llama4: [cased(`${CONTRACTIONS}?`, "\\p{N}{1,3}")],
};

/** Kinds whose words that are whole tokens skip the merges. */
const WHOLE_WORDS: ReadonlySet<string> = new Set([
  "llama-bpe",
  "llama3",
  "llama-v3",
  "falcon3",
  "lfm2",
  "tekken",
]);
/** Kinds that put a BOS first unless the file says otherwise. */
const WITH_BOS: ReadonlySet<string> = new Set([
  "llama-bpe",
  "llama3",
  "llama-v3",
  "falcon3",
  "lfm2",
  "tekken",
]);

export interface PreTokenizer {
  /** tokenizer.json's `pre_tokenizer`. */
  readonly json: Record<string, unknown>;
  readonly ignoreMerges: boolean;
  readonly addBos: boolean;
}

/** Throws an UnsupportedError for a kind that is not known: its tokens would be wrong. */
export function preTokenizer(kind: string, file: string): PreTokenizer {
  if (!Object.hasOwn(SPLITS, kind)) {
    throw new UnsupportedError(
      `${file}: pre-tokenizer ${JSON.stringify(kind.slice(0, 40))}; supported: ${Object.keys(SPLITS).join(", ")}`,
    );
  }
  const splits = SPLITS[kind].map((Regex) => ({
    type: "Split",
    pattern: { Regex },
    behavior: "Isolated",
    invert: false,
  }));
  const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    json: { type: "Sequence", pretokenizers: [...splits, bytes] },
    ignoreMerges: WHOLE_WORDS.has(kind),
    addBos: WITH_BOS.has(kind),
  };
}
