import { expect, test } from "vitest";
import { encodePair } from "../../../src/engine/evaluate/pair.ts";
import { tasks } from "../../../src/engine/evaluate/tasks.ts";
import { UsageError } from "../../../src/errors.ts";
import type { Tokenizer } from "../../../src/text/tokenizer.ts";

const lines = (...records: object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

test("lambada asks for the last word, spaces as they are", () => {
  const text = lines({ text: "I saw the  cat's tail" }, { text: "one" }, { text: "two  words" });
  expect(tasks.lambada.parse("f", text, undefined, Infinity)).toEqual([
    { context: "I saw the  cat's", continuations: [" tail"], lengths: [4], answer: 0 },
    { context: "", continuations: [" one"], lengths: [3], answer: 0 },
    { context: "two ", continuations: [" words"], lengths: [5], answer: 0 },
  ]);
});

test("piqa asks a question and counts characters", () => {
  const text = lines({ goal: "g", sol1: "é😀", sol2: "b " }, { goal: "h", sol1: "c", sol2: "d" });
  expect(tasks.piqa.parse("f", text, "1\n0\n", 1)).toEqual([
    { context: "Question: g\nAnswer:", continuations: [" é😀", " b "], lengths: [2, 2], answer: 1 },
  ]);
  expect(tasks.piqa.parse("f", text, "1\r\n0\r\n", Infinity)[1].answer).toBe(0);
  expect(() => tasks.piqa.parse("f", text, "1\n0\n1\n", 1)).toThrow("the labels of f: 3 for 2 items");
});

test.each([
  ["", "f: holds no items"],
  ["{", "f: line 1: is not JSON"],
  ["null\n", 'f: line 1: has no text "goal"'],
  ['{"goal":1}', 'f: line 1: has no text "goal"'],
  [lines({ goal: "a", sol1: "b", sol2: "c" }, { goal: "a", sol1: "b", sol2: "c" }), "line 2 is missing"],
])("a wrong file is told: %s", (text, message) => {
  const parse = () => tasks.piqa.parse("f", text, "0", Infinity);
  expect(parse).toThrow(UsageError);
  expect(parse).toThrow(message);
});

test("context and continuation are cut where the context alone ends", () => {
  // Words with the space before them.
  const encode = (text: string) => (text.match(/\s*\S+|\s+$/g) ?? []).map((word) => word.length);
  const tokenizer = { encode } as unknown as Tokenizer;
  expect(encodePair(tokenizer, "ab cde", " fghi j")).toEqual({ context: [2, 4], continuation: [5, 2] });
  expect(encodePair(tokenizer, "ab cde ", " fg")).toEqual({ context: [2, 4], continuation: [4] });
  expect(encodePair(tokenizer, "", " fg")).toEqual({ context: [], continuation: [3] });
});
