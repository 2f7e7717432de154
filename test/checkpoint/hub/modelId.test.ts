import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgePath, parseListing } from "../../../src/checkpoint/hub/listing.ts";
import { formatModelId, isModelId, parseModelId } from "../../../src/checkpoint/hub/modelId.ts";
import { UsageError } from "../../../src/errors.ts";
import { COMMIT } from "./fakeHub.ts";

describe("model ids", () => {
  it.each([
    ["meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B", "main", undefined],
    ["a/b@v1.0", "a/b", "v1.0", undefined],
    ["a/b:Q4_K_M", "a/b", "main", "Q4_K_M"],
    ["a/b@refs/pr/1:q4f16", "a/b", "refs/pr/1", "q4f16"],
    [`a/b@${COMMIT}`, "a/b", COMMIT, undefined],
  ])("reads %s", (text, repository, revision, quant) => {
    expect(parseModelId(text)).toEqual({ repository, revision, quant });
    expect(formatModelId(parseModelId(text))).toBe(text);
  });

  it.each([
    ...[
      "",
      "gpt2",
      "a/b/c",
      "/a/b",
      "a//b",
      "../b",
      "a/..",
      "./b",
      "a/b..c",
      "a--b/c",
      "a/b.git",
      "a/-b",
      "a\\b/c",
    ],
    ...[
      "C:/b",
      "a/b@",
      "a/b:",
      "a/b@../x",
      "a/b@x/../y",
      "a/b@/x",
      "a/b@.git",
      "a/b@x//y",
      "a/b@x.lock",
      "a/b:../x",
    ],
    ...["a/b\0", "a/b\n", "a/b@x\ny", "a /b", "a/b:Q4/K", `a/${"b".repeat(100)}`, "a/é"],
  ])("refuses %j", (text) => {
    expect(() => parseModelId(text)).toThrow(UsageError);
    expect(isModelId(text)).toBe(false);
  });

  it("accepts nothing that could leave a folder", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a.]{1,3}\/[a.\\-]{1,4}(@[a./\\]{1,5})?(:[a./\\]{1,5})?$/), (text) => {
        if (!isModelId(text)) return;
        const { repository, revision, quant } = parseModelId(text);
        for (const part of [...repository.split("/"), ...revision.split("/"), quant ?? "x"])
          expect(part).toMatch(/^[A-Za-z0-9_]/);
      }),
    );
  });
});

describe("names that a server sends", () => {
  it.each([
    ["model.safetensors", "plain"],
    ["onnx/model_q4.onnx", "plain"],
    ["../evil", "hostile"],
    ["a/../../evil", "hostile"],
    ["a\\..\\evil", "hostile"],
    ["/etc/passwd", "hostile"],
    ["\\\\host\\share", "hostile"],
    ["C:\\evil", "hostile"],
    ["c:evil", "hostile"],
    ["a\\b", "odd"],
    ["config.json:stream", "odd"],
    ["a//b", "odd"],
    ["./a", "odd"],
    ["nul", "odd"],
    ["COM1.json", "odd"],
    ["a. ", "odd"],
    ["a\0b", "odd"],
    ["", "odd"],
  ])("%j is %s", (path, verdict) => {
    expect(judgePath(path)).toBe(verdict);
  });

  it("ends every damaged listing in a typed error", () => {
    const good = { sha: COMMIT, siblings: [{ rfilename: "a", size: 1, blobId: "0".repeat(40) }] };
    expect(parseListing(good, "x").files).toHaveLength(1);
    for (const bad of [
      null,
      [],
      {},
      { ...good, sha: "../x" },
      { ...good, siblings: {} },
      { ...good, siblings: [1] },
    ])
      expect(() => parseListing(bad, "x")).toThrow(/^x: /);
    for (const change of [
      { size: -1 },
      { size: 1e300 },
      { size: "1" },
      { blobId: "../x" },
      { rfilename: "../x" },
    ])
      expect(() =>
        parseListing({ sha: COMMIT, siblings: [{ ...good.siblings[0], ...change }] }, "x"),
      ).toThrow(/^x: /);
  });
});
