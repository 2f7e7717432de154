import fc from "fast-check";
import { expect, test } from "vitest";
import { createStopMatcher } from "../../src/engine/stopStrings.ts";
import { UsageError } from "../../src/errors.ts";

const letters = fc.string({ unit: fc.constantFrom("a", "b", "é"), maxLength: 30 });
const stopLists = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "é"), minLength: 1, maxLength: 4 }), {
  maxLength: 3,
});

function cut(text: string, lengths: number[]): string[] {
  const pieces = [];
  let start = 0;
  for (const length of lengths) pieces.push(text.slice(start, (start += length)));
  return [...pieces, text.slice(start)];
}

/** The plain reading: the shortest beginning of the text that ends in a stop string. */
function search(text: string, stops: string[]): { text: string; stop?: string } {
  for (let end = 1; end <= text.length; end++) {
    const found = stops
      .filter((stop) => text.slice(0, end).endsWith(stop))
      .sort((a, b) => b.length - a.length)[0];
    if (found !== undefined) return { text: text.slice(0, end - found.length), stop: found };
  }
  return { text };
}

test("any cutting gives what searching the whole text gives", () => {
  fc.assert(
    fc.property(letters, stopLists, fc.array(fc.integer({ min: 0, max: 5 })), (text, stops, lengths) => {
      const matcher = createStopMatcher(stops);
      const results = cut(text, lengths).map((piece) => matcher.push(piece));
      const shown = results.map((result) => result.text).join("") + matcher.flush();
      expect({ text: shown, stop: results.at(-1)!.stop }).toEqual({
        stop: undefined,
        ...search(text, stops),
      });
    }),
    { numRuns: 1000 },
  );
});

test("holds back no more than the beginning of a stop string", () => {
  const matcher = createStopMatcher(["\nUser:"]);
  expect(matcher.push("Paris.\nUs")).toEqual({ text: "Paris." });
  expect(matcher.push("A")).toEqual({ text: "\nUsA" });
  expect(matcher.push("\nUser: x")).toEqual({ text: "", stop: "\nUser:" });
  expect(matcher.push("more")).toEqual({ text: "", stop: "\nUser:" });
});

test("refuses an empty stop string", () => {
  expect(() => createStopMatcher([""])).toThrow(UsageError);
});
