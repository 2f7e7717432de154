import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { openFile } from "../../../src/checkpoint/node.ts";
import { testData } from "../../testData.ts";
import { byteLetters } from "./byteLetters.ts";
import { openSingle } from "./openSingle.ts";
import {
  ARRAY,
  BOOL,
  type Entry,
  F32,
  f32Tensor,
  modelEntries,
  STRING,
  U32,
  writeGguf,
} from "./writeGguf.ts";

async function tokenizerOf(entries: Entry[]) {
  const bytes = writeGguf(modelEntries("llama", entries), [f32Tensor("token_embd.weight", [5, 16])]);
  const { tokenizer } = await openSingle(bufferSource(bytes, "model.gguf"));
  return { files: tokenizer!, tokenizer: new Tokenizer(tokenizer!.tokenizer, tokenizer!.config) };
}

const BYTES = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
);

function sentencePiece(pieces: string[], extra: Entry[] = []): Entry[] {
  const tokens = ["<unk>", "<s>", "</s>", ...BYTES, ...pieces];
  const types = tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1));
  return [
    ["tokenizer.ggml.model", STRING, "llama"],
    ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
    ["tokenizer.ggml.scores", ARRAY, [F32, tokens.map((_, id) => (id < 259 ? 0 : 259 - id))]],
    ["tokenizer.ggml.token_type", ARRAY, [5, types]],
    ["tokenizer.ggml.bos_token_id", U32, 1],
    ["tokenizer.ggml.eos_token_id", U32, 2],
    ...extra,
  ];
}

describe("SentencePiece BPE", () => {
  it("merges the best-scored neighbours, as the plain algorithm", async () => {
    const letters = ["a", "b", "▁"];
    const piece = fc.string({ unit: fc.constantFrom(...letters), minLength: 2, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(piece, { maxLength: 20 }),
        fc.string({ unit: fc.constantFrom("a", "b", " ", "é"), minLength: 1, maxLength: 30 }),
        async (longer, text) => {
          const pieces = [...longer, ...letters];
          const { tokenizer } = await tokenizerOf(sentencePiece(pieces));
          const found = tokenizer.encode(text, { add_special_tokens: false }).ids;
          expect(found).toEqual(plainMerge(`▁${text.replaceAll(" ", "▁")}`, pieces));
        },
      ),
      { numRuns: 300 },
    );
  });

  it("falls back to bytes, adds BOS and the space before each text, decodes to the text", async () => {
    const { tokenizer, files } = await tokenizerOf(sentencePiece(["▁a", "a", "▁"]));
    const { ids } = tokenizer.encode("a é");
    expect(ids).toEqual([1, 259, 261, 3 + 0xc3, 3 + 0xa9]);
    expect(tokenizer.decode(ids, { skip_special_tokens: true })).toBe("a é");
    expect(files.config).toMatchObject({
      bos_token: "<s>",
      eos_token: "</s>",
      add_bos_token: true,
    });
  });

  it("honours add_space_prefix and add_bos_token", async () => {
    const off: Entry[] = [
      ["tokenizer.ggml.add_space_prefix", BOOL, false],
      ["tokenizer.ggml.add_bos_token", BOOL, false],
      ["tokenizer.ggml.add_eos_token", BOOL, true],
    ];
    const { tokenizer } = await tokenizerOf(sentencePiece(["▁a", "a", "▁"], off));
    expect(tokenizer.encode("a</s> a").ids).toEqual([260, 2, 259, 2]);
  });
});

describe("unigram", () => {
  it("finds the likeliest pieces", async () => {
    const tokens = ["<pad>", "</s>", "<unk>", "▁a", "▁", "a", "b", "ab", "▁▁"];
    const { tokenizer } = await tokenizerOf([
      ["tokenizer.ggml.model", STRING, "t5"],
      ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
      ["tokenizer.ggml.scores", ARRAY, [F32, [0, 0, 0, -3, -2, -4, -4, -3, -2]]],
      ["tokenizer.ggml.token_type", ARRAY, [5, [3, 3, 2, 1, 1, 1, 1, 1, 1]]],
      ["tokenizer.ggml.eos_token_id", U32, 1],
      ["tokenizer.ggml.unknown_token_id", U32, 2],
    ]);
    expect(tokenizer.encode("ab a").ids).toEqual([4, 7, 3, 1]);
    // Blanks in a row may be one piece, as in llama.cpp.
    expect(tokenizer.encode("a  b").ids).toEqual([3, 8, 6, 1]);
  });
});

describe("byte-level BPE", () => {
  it.each(["default", "gpt-2", "llama-bpe", "qwen2", "smollm", "tekken", "falcon", "gpt-4o", "deepseek-llm"])(
    "%s covers any text",
    async (pre) => {
      const { tokenizer } = await tokenizerOf(byteLevel(pre));
      const text = "Hello  world\r\n\t'Tis 12345 été 東京 🙂👩‍👩‍👧 don'T\n\n  x_y = [1.5]; ";
      const { ids } = tokenizer.encode(text, { add_special_tokens: false });
      expect(tokenizer.decode(ids)).toBe(text);
    },
  );

  it("splits digits as the kind says", async () => {
    const merges = ["1 2", "12 3", "123 4"];
    const count = async (pre: string) =>
      (await tokenizerOf(byteLevel(pre, merges))).tokenizer.encode("1234", { add_special_tokens: false }).ids
        .length;
    expect([await count("gpt-2"), await count("llama-bpe"), await count("qwen2")]).toEqual([1, 2, 4]);
  });

  it("refuses an unknown kind", async () => {
    await expect(tokenizerOf(byteLevel("shiny-new"))).rejects.toThrow(/"shiny-new".*qwen2/);
  });
});

const SAMPLE =
  "Hello  world\r\n\t'Tis 12345 \u00e9t\u00e9 \u6771\u4eac \ud83d\ude42\ud83d\udc69\u200d\ud83d\udc69\u200d\ud83d\udc67 don'T\n\n   x_y = [1.5];\u00a0\u3000end \u0627\u0644\u0633\u0644\u0627\u0645 \u0939\u093f\u0928\u094d\u0926\u0940\n    if (a != b) { return \"\u00df\u0130\"; }\t\t// \ufeff?!  ";
const SAMPLE_IDS = [
  19556, 216, 905, 2738, 197, 23, 68, 271, 216, 33, 34, 35, 36, 37, 216, 19380, 2756, 17097, 247, 126, 16736,
  122, 47526, 10813, 235, 119, 321, 231, 10813, 235, 119, 321, 231, 10813, 235, 117, 1326, 23, 68, 39892,
  1792, 79, 105, 446, 933, 33, 30, 37, 26695, 15442, 12109, 218, 486, 27819, 30914, 12667, 10805, 21706,
  12335, 134, 27011, 30658, 16525, 44757, 37189, 472, 585, 365, 81, 6541, 278, 25, 1662, 1003, 476, 34878,
  143, 125, 16005, 4029, 197, 197, 1559, 216, 186, 136, 140, 17593, 256,
];

const smollm2 = testData("models/smollm2-135m-instruct-q4_1.gguf");
const wikitext = testData("data/wikitext-2/wiki.test.raw");

describe.skipIf(!smollm2 || !wikitext)("SmolLM2-135M-Instruct", () => {
  it("tokenizes WikiText-2", async () => {
    const { tokenizer } = await openSingle(await openFile(smollm2!));
    const text = readFileSync(wikitext!, "utf8");
    const { ids } = new Tokenizer(tokenizer!.tokenizer, tokenizer!.config).encode(text, {
      add_special_tokens: false,
    });
    expect(ids.length).toBe(303415);
    expect(ids.slice(0, 7)).toEqual([3717, 446, 6356, 389, 9226, 352, 446]);
  });

  it("tokenizes scripts, emoji, whitespace and code as transformers 5.23 does from the same file", async () => {
    const { tokenizer } = await openSingle(await openFile(smollm2!));
    const found = new Tokenizer(tokenizer!.tokenizer, tokenizer!.config).encode(SAMPLE, {
      add_special_tokens: false,
    });
    expect(found.ids).toEqual(SAMPLE_IDS);
  });
});

/** The definition: while a pair of neighbours forms a piece, merge the best-scored, the leftmost of equals. */
function plainMerge(text: string, pieces: string[]): number[] {
  const parts = [...text];
  for (;;) {
    let best = -1;
    let rank = Number.POSITIVE_INFINITY;
    for (let i = 0; i + 1 < parts.length; i++) {
      const found = pieces.indexOf(parts[i] + parts[i + 1]);
      if (found >= 0 && found < rank) [best, rank] = [i, found];
    }
    if (best < 0) break;
    parts.splice(best, 2, parts[best] + parts[best + 1]);
  }
  return parts.flatMap((part) => {
    const id = pieces.indexOf(part);
    return id >= 0 ? [259 + id] : [...new TextEncoder().encode(part)].map((byte) => 3 + byte);
  });
}

function byteLevel(pre: string, merges = ["a b"]): Entry[] {
  const tokens = [...byteLetters(), ...merges.map((merge) => merge.replace(" ", ""))];
  return [
    ["tokenizer.ggml.model", STRING, "gpt2"],
    ["tokenizer.ggml.pre", STRING, pre],
    ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
    ["tokenizer.ggml.token_type", ARRAY, [5, tokens.map(() => 1)]],
    ["tokenizer.ggml.merges", ARRAY, [STRING, merges]],
  ];
}
