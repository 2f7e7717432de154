import { expect, test } from "vitest";
import { significant } from "../../src/cli/format.ts";

test.each([
  [0, "0"],
  [0.03771, "0.0377"],
  [0.9997, "1.00"],
  [7.123, "7.12"],
  [71.13, "71.1"],
  [711.3, "711"],
])("three digits of %d: %s", (value, text) => {
  expect(significant(value)).toBe(text);
});
