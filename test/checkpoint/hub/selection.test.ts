import { describe, expect, it } from "vitest";
import { selectFiles, shardsOf } from "../../../src/checkpoint/hub/selection.ts";
import { CheckpointError, UnsupportedError, UsageError } from "../../../src/errors.ts";

const SMALL = ["config.json", "tokenizer.json", "tokenizer_config.json"];

describe("files of a model", () => {
  it("takes config, tokenizer and safetensors, nothing else", () => {
    const paths = [
      ...SMALL,
      "README.md",
      "model.safetensors",
      "pytorch_model.bin",
      "vocab.json",
      "x-Q4_K_M.gguf",
    ];
    const selection = selectFiles("a/b", [...paths, "onnx/model.onnx", "chat_template.jinja"]);
    expect(selection).toMatchObject({ format: "safetensors", index: undefined, entry: undefined });
    expect([...selection.files].sort()).toEqual(
      [...SMALL, "chat_template.jinja", "model.safetensors"].sort(),
    );
  });

  it("takes the older tokenizer files where there is no tokenizer.json", () => {
    const { files } = selectFiles("a/b", ["config.json", "model.safetensors", "vocab.json", "merges.txt"]);
    expect(files).toContain("merges.txt");
  });

  it("takes the index of sharded weights", () => {
    const paths = [...SMALL, "model.safetensors.index.json", "model-00001-of-00002.safetensors"];
    expect(selectFiles("a/b", paths).index).toBe("model.safetensors.index.json");
  });

  it("chooses among GGUF files", () => {
    const paths = [
      "m-Q8_0.gguf",
      "m.Q4_K_M.gguf",
      "m-UD-Q2_K_XL.gguf",
      "mmproj-m-F16.gguf",
      "imatrix.gguf",
      "m-f16.gguf",
    ];
    const entry = (quant?: string) => selectFiles("a/b", paths, quant).entry;
    expect(entry()).toBe("m.Q4_K_M.gguf");
    expect(entry("q8_0")).toBe("m-Q8_0.gguf");
    expect(entry("ud-q2_k_xl")).toBe("m-UD-Q2_K_XL.gguf");
    expect(entry("F16")).toBe("m-f16.gguf");
    expect(() => entry("Q3_K_S")).toThrow(/Q3_K_S.*choose among F16, Q4_K_M, Q8_0, UD-Q2_K_XL/);
  });

  it("takes all parts of a split GGUF, and misses none", () => {
    const parts = [2, 1, 3].map((part) => `Q4_K_M/m-Q4_K_M-0000${part}-of-00003.gguf`);
    const selection = selectFiles("a/b", [...parts, "m-Q8_0.gguf"]);
    expect(selection.files).toEqual([...parts].sort());
    expect(selection.entry).toBe(parts[1]);
    expect(() => selectFiles("a/b", parts.slice(1))).toThrow(CheckpointError);
    expect(() => selectFiles("a/b", ["m-Q8_0-00000-of-00000.gguf"])).toThrow(CheckpointError);
  });

  it("asks when it cannot tell", () => {
    expect(() => selectFiles("a/b", ["m-strange.gguf", "m-other.gguf"])).toThrow(/:M-STRANGE, :M-OTHER/);
    expect(() => selectFiles("a/b", ["x-Q4_K_M.gguf", "y-Q4_K_M.gguf"])).toThrow(/:x-Q4_K_M, :y-Q4_K_M/);
    expect(selectFiles("a/b", ["x-Q4_K_M.gguf", "y-Q4_K_M.gguf"], "y-Q4_K_M").entry).toBe("y-Q4_K_M.gguf");
    expect(selectFiles("a/b", ["only.gguf"]).entry).toBe("only.gguf");
  });

  it("chooses among ONNX graphs and brings their data", () => {
    const graphs = [
      "onnx/model.onnx",
      "onnx/model.onnx_data",
      "onnx/model.onnx_data_1",
      "onnx/model_quantized.onnx",
    ];
    const paths = [...SMALL, ...graphs, "onnx/model_q4f16.onnx", "onnx/model_q4f16.onnx_data"];
    expect(selectFiles("a/b", paths).entry).toBe("onnx/model_quantized.onnx");
    expect(selectFiles("a/b", paths, "q8").entry).toBe("onnx/model_quantized.onnx");
    expect(selectFiles("a/b", paths, "Q4F16").files).toEqual(
      [...SMALL, ...paths.slice(-2)].sort(byOrder(paths)),
    );
    expect(selectFiles("a/b", paths, "fp32").files).toEqual(
      [...SMALL, ...graphs.slice(0, 3)].sort(byOrder(paths)),
    );
    expect(() => selectFiles("a/b", paths, "int4")).toThrow(UsageError);
  });

  it("names what a repository without weights has", () => {
    expect(() => selectFiles("a/b", ["config.json", "pytorch_model.bin"])).toThrow(UnsupportedError);
    expect(() => selectFiles("a/b", ["config.json", "pytorch_model.bin"])).toThrow(/pytorch_model\.bin/);
  });

  it("refuses an index that names files elsewhere", () => {
    expect(shardsOf({ weight_map: { a: "x.safetensors", b: "x.safetensors" } }, "i")).toEqual([
      "x.safetensors",
    ]);
    for (const bad of [
      null,
      [],
      {},
      { weight_map: [] },
      { weight_map: { a: 1 } },
      { weight_map: { a: "../x" } },
    ])
      expect(() => shardsOf(bad, "i")).toThrow(CheckpointError);
  });
});

function byOrder(paths: readonly string[]) {
  return (a: string, b: string) => paths.indexOf(a) - paths.indexOf(b);
}
