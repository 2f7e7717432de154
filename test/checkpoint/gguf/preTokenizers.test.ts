import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bufferSource } from "../../../src/checkpoint/byteSource.ts";
import { createTokenizer } from "../../../src/text/tokenizer.ts";
import { byteLetters } from "./byteLetters.ts";
import { openSingle } from "./openSingle.ts";
import { ARRAY, f32Tensor, modelEntries, STRING, U32, writeGguf } from "./writeGguf.ts";

interface Golden {
  merges: string[];
  kinds: Record<string, { count: number; sha256: string; bos: boolean; wholeWords: boolean }>;
}

const read = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");
/** Made by tools/fixtures/gguf-tokenizers.py with llama.cpp. */
const { merges, kinds }: Golden = JSON.parse(read("golden.preTokenizers.json"));
const text = read("sample.txt");
const letters = byteLetters();
const tokens = [...new Set([...letters, ...merges.map((merge) => merge.replace(" ", ""))])];
const bos = tokens.push("\u0120Halftqxz", "<s>", "</s>") - 2;

async function tokenizerOf(pre: string) {
  const types = tokens.map((_, id) => (id < bos ? 1 : 3));
  const { tokenizer } = await openSingle(
    bufferSource(
      writeGguf(
        modelEntries("llama", [
          ["tokenizer.ggml.model", STRING, "gpt2"],
          ["tokenizer.ggml.pre", STRING, pre],
          ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
          ["tokenizer.ggml.token_type", ARRAY, [5, types]],
          ["tokenizer.ggml.merges", ARRAY, [STRING, merges]],
          ["tokenizer.ggml.bos_token_id", U32, bos],
        ]),
        [f32Tensor("token_embd.weight", [1, 16])],
      ),
      pre,
    ),
  );
  return createTokenizer(tokenizer!, {});
}

it.each(Object.entries(kinds))("%s splits as in llama.cpp", async (kind, golden) => {
  const tokenizer = await tokenizerOf(kind);
  const ids = tokenizer.encode(text);
  expect(ids.length).toBe(golden.count);
  expect(createHash("sha256").update(ids.join(",")).digest("hex")).toBe(golden.sha256);
  expect(tokenizer.decode(ids)).toBe(text);
  expect(tokenizer.addBos).toBe(golden.bos);
  expect(tokenizer.encode("ab Halftqxz").includes(bos - 1)).toBe(golden.wholeWords);
});
