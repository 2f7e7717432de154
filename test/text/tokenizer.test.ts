import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CheckpointError, UnsupportedError, UsageError } from "../../src/errors.ts";
import { createDetokenizer } from "../../src/text/detokenizer.ts";
import { createTokenizer } from "../../src/text/tokenizer.ts";
import { testData } from "../testData.ts";
import { miniMindFiles } from "./miniMind.ts";
import { sentencePieceFiles } from "./sentencePiece.ts";

const golden = JSON.parse(readFileSync(new URL("golden.encode.json", import.meta.url), "utf8"));
const miniMind = createTokenizer(miniMindFiles());
const sentencePiece = createTokenizer(sentencePieceFiles());
const anyText = fc.string({ unit: "binary" });
const kinds = [
  ["byte-level", miniMind],
  ["SentencePiece", sentencePiece],
] as const;

describe("encode", () => {
  test("equals the tokenizers library of Python on scripts, emoji, white space and code", () => {
    expect(miniMind.encode(golden.text)).toEqual(golden.ids);
  });

  test("spells special tokens out in text from strangers", () => {
    expect(miniMind.encode("<|im_end|>")).toEqual([2]);
    const ids = miniMind.encode("<|im_end|>", { parseSpecialTokens: false });
    expect(ids).not.toContain(2);
    expect(miniMind.decode(ids)).toBe("<|im_end|>");
  });

  test("merges, falls back to bytes and adds the beginning of sequence", () => {
    const ids = sentencePiece.encode("hello wor€", { addSpecialTokens: true });
    expect(ids[0]).toBe(1);
    expect(ids[1]).toBe(sentencePiece.tokenId("\u2581hello"));
    expect(ids[2]).toBe(sentencePiece.tokenId("\u2581wor"));
    expect(ids.slice(3).map((id) => [...sentencePiece.tokenBytes(id)])).toEqual([[0xe2], [0x82], [0xac]]);
  });

  test("takes a long text without any pre-tokenization", () => {
    const ids = sentencePiece.encode("hello wor".repeat(10_000));
    expect(sentencePiece.decode(ids)).toBe("hello wor".repeat(10_000));
  });

  test.each(kinds)("%s: decoding gives the text back", (_, tokenizer) => {
    fc.assert(
      fc.property(anyText, (text) => {
        const spelled = tokenizer.encode(text, { parseSpecialTokens: false });
        // A SentencePiece vocabulary cannot tell its space marker from a space.
        const expected = tokenizer.dropsLeadingSpace ? text.replaceAll("\u2581", " ") : text;
        expect(tokenizer.decode(spelled)).toBe(expected);
      }),
    );
  });

  const wikiText = testData("data/wikitext-2/wiki.test.raw");
  test.skipIf(!wikiText)("WikiText-2 whole, as Python's", () => {
    const ids = miniMind.encode(readFileSync(wikiText!, "utf8"));
    expect(ids.length).toBe(457718);
    const digest = createHash("sha256").update(Uint32Array.from(ids)).digest("hex");
    expect(digest).toBe("8a0c4060e7cf7775c1aa3d4700f010db643fbade1403a5363de1984cba0f6ae4");
  });
});

describe("special tokens", () => {
  test("are read from every place that names them", () => {
    expect(miniMind.vocabularySize).toBe(6400);
    expect(miniMind.bosId).toBe(1);
    expect(miniMind.addBos).toBe(false);
    expect([...miniMind.eosIds].sort()).toEqual([0, 2]);
    expect([...createTokenizer(miniMindFiles(), { eos_token_id: [7, 8] }).eosIds]).toEqual([2, 7, 8, 0]);
    expect(sentencePiece.addBos).toBe(true);
    expect([...sentencePiece.eosIds]).toEqual([2]);
  });

  test("padding ids are empty, others are refused", () => {
    expect(miniMind.tokenBytes(6400)).toHaveLength(0);
    expect(() => miniMind.tokenBytes(-1)).toThrow(UsageError);
  });
});

describe("detokenizer", () => {
  test.each(kinds)("%s: the pieces make up the decoded text", (_, tokenizer) => {
    const anyIds = fc.array(fc.integer({ min: 0, max: tokenizer.vocabularySize + 3 }));
    const encoded = anyText.map((text) => tokenizer.encode(text));
    fc.assert(
      fc.property(fc.oneof(anyIds, encoded), fc.boolean(), (ids, skipSpecialTokens) => {
        const detokenizer = createDetokenizer(tokenizer, { skipSpecialTokens });
        const streamed = ids.map((id) => detokenizer.push(id)).join("") + detokenizer.flush();
        expect(streamed).toBe(tokenizer.decode(ids, { skipSpecialTokens }));
      }),
    );
  });

  test.each(kinds)("%s: valid text never shows a replacement character", (_, tokenizer) => {
    fc.assert(
      fc.property(
        anyText.filter((text) => !text.includes("\ufffd")),
        (text) => {
          const detokenizer = createDetokenizer(tokenizer);
          for (const id of tokenizer.encode(text)) expect(detokenizer.push(id)).not.toContain("\ufffd");
        },
      ),
    );
  });

  test("keeps the space of a continued text", () => {
    const ids = sentencePiece.encode("hello");
    expect(createDetokenizer(sentencePiece).push(ids[0])).toBe("hello");
    expect(createDetokenizer(sentencePiece, { continuesText: true }).push(ids[0])).toBe(" hello");
  });
});

describe("bad tokenizer.json", () => {
  const files = sentencePieceFiles();
  const altered = (change: object) => () =>
    createTokenizer({ tokenizer: { ...files.tokenizer, ...change }, config: files.config });
  test.each([
    ["no model", { model: undefined }, CheckpointError],
    [
      "empty vocabulary",
      { model: { type: "BPE", vocab: {}, merges: [] }, added_tokens: [] },
      CheckpointError,
    ],
    ["huge id", { model: { type: "BPE", vocab: { a: 1e12 }, merges: [] } }, CheckpointError],
    ["unknown merge", { model: { type: "BPE", vocab: { a: 0 }, merges: ["a b"] } }, CheckpointError],
    ["unknown stage", { pre_tokenizer: { type: "Nonsense" } }, CheckpointError],
    ["unsupported decoder", { decoder: { type: "WordPiece" } }, UnsupportedError],
  ])("%s", (_, change, error) => {
    expect(altered(change)).toThrow(error);
  });
});
