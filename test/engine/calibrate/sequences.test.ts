import { describe, expect, it } from "vitest";
import { calibrationSequences } from "../../../src/engine/calibrate/sequences.ts";

/** One token a character: its code. */
const tokenizer = {
  encode: (text: string) => [...text].map((c) => c.codePointAt(0)!),
  bosId: 1,
  addBos: false,
};
const text = Array.from({ length: 1000 }, (_, i) => String.fromCodePoint(1000 + i)).join("");

describe("calibrationSequences", () => {
  it("spreads sequences over the text", () => {
    const options = { tokens: 40, sequenceLength: 10 };
    const found = calibrationSequences([text], tokenizer, options);
    expect(found.map(({ length }) => length)).toEqual([10, 10, 10, 10]);
    expect(found[0][0]).toBe(1000);
    expect(found[3][0]).toBeGreaterThan(1900);
    expect(calibrationSequences([text], tokenizer, options)).toEqual(found);
  });

  it("takes all of a text that is short, no token twice", () => {
    const found = calibrationSequences([text], tokenizer, { tokens: 5000, sequenceLength: 100 });
    expect(found.flat()).toEqual(tokenizer.encode(text));
  });

  it("begins with BOS where the tokenizer or the caller says so", () => {
    const options = { tokens: 20, sequenceLength: 10 };
    for (const [tokenizerOf, bos] of [
      [{ ...tokenizer, addBos: true }, "auto"],
      [tokenizer, "always"],
    ] as const) {
      for (const ids of calibrationSequences([text], tokenizerOf, { ...options, bos })) {
        expect(ids.slice(0, 2)).not.toEqual([1, 1]);
        expect(ids[0]).toBe(1);
        expect(ids.length).toBe(10);
      }
    }
    const without = { ...tokenizer, bosId: undefined };
    expect(() => calibrationSequences([text], without, { ...options, bos: "always" })).toThrow(
      /no beginning/,
    );
  });

  it("refuses texts that do not fill a sequence", () => {
    const options = { tokens: 2048, sequenceLength: 1024 };
    expect(() => calibrationSequences(["short"], tokenizer, options)).toThrow(/shorter than one sequence/);
    expect(() => calibrationSequences([], tokenizer, options)).toThrow(/shorter than one sequence/);
  });
});
