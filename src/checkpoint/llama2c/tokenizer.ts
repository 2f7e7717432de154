import { CheckpointError } from "../../errors.ts";
import type { ByteSource, TokenizerFiles } from "../checkpoint.ts";
import { decodeUtf8 } from "../json.ts";

/**
 * llama2.c's tokenizer.bin: the longest piece's length as int32, then for each token a
 * float32 score, an int32 length and the piece. Source: llama2.c, tokenizer.py `export`.
 *
 * @module
 */

/** Longer pieces are no tokenizer's. */
const MAX_PIECE_BYTES = 1024;
/** Ids 3 to 258 are the 256 bytes, as in every SentencePiece model of Llama's family. */
const FIRST_BYTE_ID = 3;

/** Reads tokenizer.bin from `start` to the end of the source and converts it to Hugging Face's files. */
export async function readLlama2cTokenizer(
  source: ByteSource,
  start: number,
  vocabulary: number,
): Promise<TokenizerFiles> {
  const bytes = await source.read(start, source.size - start);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fail = (problem: string, at: number): never => {
    throw new CheckpointError(source.name, `no llama2.c tokenizer: ${problem}`, { offset: start + at });
  };
  if (bytes.length < 4) fail("too short", 0);
  const longest = view.getInt32(0, true);
  if (longest <= 0 || longest > MAX_PIECE_BYTES) fail(`longest piece of ${longest} bytes`, 0);
  if (vocabulary * 8 > bytes.length) fail(`${bytes.length} bytes for ${vocabulary} tokens`, 0);
  const pieces: string[] = [];
  const scores: number[] = [];
  let at = 4;
  for (let id = 0; id < vocabulary; id++) {
    if (at + 8 > bytes.length) fail(`ends at token ${id} of ${vocabulary}`, at);
    scores.push(view.getFloat32(at, true));
    const length = view.getInt32(at + 4, true);
    at += 8;
    if (length < 0 || length > longest || at + length > bytes.length)
      fail(`token ${id} of ${length} bytes`, at - 4);
    pieces.push(pieceOf(id, decodeUtf8(bytes.subarray(at, at + length), source.name, start + at)));
    at += length;
  }
  if (at !== bytes.length) fail(`${bytes.length - at} bytes follow its last token`, at);
  return { tokenizer: bytePairTokenizer(pieces, scores), config: TOKENIZER_CONFIG };
}

const TOKENIZER_CONFIG: Readonly<Record<string, unknown>> = Object.freeze({
  tokenizer_class: "LlamaTokenizer",
  bos_token: "<s>",
  eos_token: "</s>",
  unk_token: "<unk>",
  add_bos_token: true,
  add_eos_token: false,
  clean_up_tokenization_spaces: false,
});

/**
 * The exporter wrote spaces for SentencePiece's U+2581, put line breaks around the special tokens, and
 * stored bytes as themselves or as `<0x0A>`.
 */
function pieceOf(id: number, stored: string): string {
  if (id === 0) return "<unk>";
  if (id === 1) return "<s>";
  if (id === 2) return "</s>";
  if (id < FIRST_BYTE_ID + 256) {
    return `<0x${(id - FIRST_BYTE_ID).toString(16).toUpperCase().padStart(2, "0")}>`;
  }
  return stored.replaceAll(" ", "\u2581");
}

/**
 * SentencePiece merges, at each step, the pair whose piece scores best. As ranked merges: every split
 * of every piece into two pieces, best score of the whole first, ties by the ids of the halves.
 */
function bytePairTokenizer(pieces: readonly string[], scores: readonly number[]): Record<string, unknown> {
  const vocab: Record<string, number> = Object.create(null);
  const ids = new Map<string, number>();
  for (const [id, piece] of pieces.entries()) {
    if (ids.has(piece)) continue;
    ids.set(piece, id);
    vocab[piece] = id;
  }
  const merges: { left: string; right: string; score: number; ids: [number, number] }[] = [];
  for (const [piece, id] of ids) {
    if (id < FIRST_BYTE_ID + 256) continue;
    for (let cut = 1; cut < piece.length; cut++) {
      const [left, right] = [piece.slice(0, cut), piece.slice(cut)];
      const [leftId, rightId] = [ids.get(left), ids.get(right)];
      if (leftId === undefined || rightId === undefined) continue;
      merges.push({ left, right, score: scores[id], ids: [leftId, rightId] });
    }
  }
  merges.sort((a, b) => b.score - a.score || a.ids[0] - b.ids[0] || a.ids[1] - b.ids[1]);
  const special = ["<unk>", "<s>", "</s>"].map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: special,
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
      pair: [
        { SpecialToken: { id: "<s>", type_id: 0 } },
        { Sequence: { id: "A", type_id: 0 } },
        { SpecialToken: { id: "<s>", type_id: 1 } },
        { Sequence: { id: "B", type_id: 1 } },
      ],
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
      dropout: null,
      unk_token: "<unk>",
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab,
      merges: merges.map(({ left, right }) => `${left} ${right}`),
    },
  };
}
