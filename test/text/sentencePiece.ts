import type { TokenizerFiles } from "../../src/checkpoint/checkpoint.ts";

/** A small SentencePiece-like tokenizer with byte fallback, in the form of Llama 2's. */
export function sentencePieceFiles(): TokenizerFiles {
  const bytes = Array.from({ length: 256 }, (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`);
  const characters = [..."\u2581abcdehlnorstw.,!é中"];
  const merges = [
    "h e",
    "l l",
    "he ll",
    "hell o",
    "\u2581 hello",
    "\u2581 w",
    "o r",
    "\u2581w or",
    "\u2581 \u2581",
  ];
  const merged = merges.map((merge) => merge.replace(" ", ""));
  const vocabulary = ["<unk>", "<s>", "</s>", ...bytes, ...characters, ...merged];
  const special = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return {
    tokenizer: {
      added_tokens: ["<unk>", "<s>", "</s>"].map((content, id) => ({ id, content, ...special })),
      normalizer: {
        type: "Sequence",
        normalizers: [
          { type: "Prepend", prepend: "\u2581" },
          { type: "Replace", pattern: { String: " " }, content: "\u2581" },
        ],
      },
      pre_tokenizer: null,
      post_processor: {
        type: "TemplateProcessing",
        single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
        pair: [],
        special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] } },
      },
      decoder: {
        type: "Sequence",
        decoders: [
          { type: "Replace", pattern: { String: "\u2581" }, content: " " },
          { type: "ByteFallback" },
          { type: "Fuse" },
          { type: "Strip", content: " ", start: 1, stop: 0 },
        ],
      },
      model: {
        type: "BPE",
        unk_token: "<unk>",
        fuse_unk: true,
        byte_fallback: true,
        vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
        merges,
      },
    },
    config: { bos_token: "<s>", eos_token: { content: "</s>" }, add_bos_token: true },
  };
}
