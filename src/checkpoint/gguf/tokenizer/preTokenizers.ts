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
const gpt4o = [cased(`${CONTRACTIONS}?`, "\\p{N}{1,3}")];
const qwen2 = [llama3Like("\\p{N}")];
/** The cased letters of Unicode 11 without Georgian's small ones, as deepseek-llm lists them. */
const CASED =
  "A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}\u{295}-\u{2AF}" +
  "\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}\u{388}-\u{38A}\u{38C}\u{38E}-\u{3A1}" +
  "\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}" +
  "\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}" +
  "\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}" +
  "\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}" +
  "\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}\u{2102}\u{2107}" +
  "\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\u{212A}-\u{212D}\u{212F}-\u{2134}" +
  "\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}" +
  "\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}\u{A771}-\u{A787}" +
  "\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}" +
  "\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}" +
  "\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}";
const CJK = "[一-龥ࠀ-一가-퟿]+";
const deepseekV3 = [
  "\\p{N}{1,3}",
  "[一-龥぀-ゟ゠-ヿ]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" +
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

const SPLITS: Readonly<Record<string, readonly string[]>> = {
  default: ["[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"],
  falcon: ["[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"],
  "gpt-2": gpt2,
  mpt: gpt2,
  olmo: gpt2,
  "phi-2": gpt2,
  jais: gpt2,
  "a.x-4.0": gpt2,
  exaone4: gpt2,
  gigachat: gpt2,
  "granite-docling": gpt2,
  mellum: gpt2,
  trillion: gpt2,
  starcoder: digitsThenGpt2,
  refact: digitsThenGpt2,
  "command-r": digitsThenGpt2,
  smollm: digitsThenGpt2,
  codeshell: digitsThenGpt2,
  exaone: digitsThenGpt2,
  "minerva-7b": digitsThenGpt2,
  mellum2: digitsThenGpt2,
  "llama-bpe": llama3,
  llama3,
  "llama-v3": llama3,
  "smaug-bpe": llama3,
  dbrx: llama3,
  "chatglm-bpe": llama3,
  falcon3: llama3,
  "falcon-h1": llama3,
  lfm2: llama3,
  glm4: llama3,
  "midm-2.0": llama3,
  minicpm5: llama3,
  pixtral: llama3,
  qwen2,
  "deepseek-r1-qwen": qwen2,
  stablelm2: qwen2,
  hunyuan: qwen2,
  megrez: qwen2,
  "grok-2": qwen2,
  "solar-open": qwen2,
  qwen35: [
    `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${SPACES}`,
  ],
  "deepseek-llm": ["[\r\n]", `\\s?[${CASED}]+`, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", CJK, "\\p{N}+"],
  "deepseek-coder": ["[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"],
  "deepseek-v3": deepseekV3,
  "hunyuan-dense": deepseekV3,
  "joyai-llm": deepseekV3,
  tekken: [cased("", "\\p{N}")],
  "gpt-4o": gpt4o,
  llama4: gpt4o,
  "minimax-m2": gpt4o,
};

/** Kinds that put a BOS first unless the file says otherwise. */
const WITH_BOS = [
  "llama-bpe",
  "llama3",
  "llama-v3",
  "falcon3",
  "falcon-h1",
  "lfm2",
  "midm-2.0",
  "pixtral",
  "tekken",
];
/** Kinds whose words that are whole tokens skip the merges. */
const WHOLE_WORDS = [...WITH_BOS, "glm4", "minicpm5"];

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
    ignoreMerges: WHOLE_WORDS.includes(kind),
    addBos: WITH_BOS.includes(kind),
  };
}
