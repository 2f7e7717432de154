import { describe, expect, it } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { allSchemes, parseScheme } from "../../src/quantizers/scheme.ts";

describe("parseScheme", () => {
  it.each([
    ["uniform-8", "uniform", 8],
    ["nuq-2", "nuq", 2],
    ["vq-2.5", "vq", 2.5],
    ["tcq-3.25", "tcq", 3.25],
    ["tcq-s-1.5", "tcq-s", 1.5],
    ["bf16", "float", 16],
  ])("%s", (name, family, bits) => {
    expect(parseScheme(name)).toEqual({ name, family, bits });
  });

  it("gives one name to one scheme", () => {
    expect(parseScheme("tcq-3.50").name).toBe("tcq-3.5");
    for (const scheme of allSchemes()) expect(parseScheme(scheme.name)).toEqual(scheme);
  });

  it.each([
    ["nuq-9", /nuq takes 2 to 8 bits/],
    ["nuq-2.5", /nuq takes 2 to 8 bits/],
    ["vq-2.25", /vq takes 1.5 to 6 in steps of 0.5 bits/],
    ["tcq-s-1.3", /tcq-s takes 1.5 to 5 in steps of 0.25 bits/],
    ["tcq", /"tcq" lacks its bits.*"tcq-1.5"/],
    ["q4_k", /unknown scheme "q4_k".*uniform-B.*nuq-B.*vq-B.*tcq-B.*tcq-s-B.*f32; f16; bf16/],
    ["", /unknown scheme/],
    ["toString", /unknown scheme/],
  ])("refuses %j", (name, message) => {
    expect(() => parseScheme(name)).toThrow(UsageError);
    expect(() => parseScheme(name)).toThrow(message);
  });
});
