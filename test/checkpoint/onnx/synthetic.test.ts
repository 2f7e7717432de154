import { expect, test } from "vitest";
import { openOnnx } from "../../../src/checkpoint/onnx/open.ts";
import { memoryFiles } from "../memoryFiles.ts";
import { initializer, model, node } from "./writeOnnx.ts";

const EMBEDDING = initializer("model.embed_tokens.weight", [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6));
const LOOK_UP = node("Gather", "/model/embed_tokens/Gather", ["model.embed_tokens.weight", "ids"], ["x"]);
const NORM = "model.layers.0.input_layernorm.weight";
const SCALE = initializer(NORM, [2], Float32Array.of(1.5, 0.5));

function open(model_type: string, nodes: Uint8Array[], initializers: Uint8Array[]) {
  const config = new TextEncoder().encode(JSON.stringify({ model_type, hidden_size: 2 }));
  const m = model([LOOK_UP, ...nodes], [EMBEDDING, ...initializers]);
  return openOnnx(memoryFiles({ "config.json": config, m }), "m");
}

async function values(opening: ReturnType<typeof open>, name: string) {
  const tensor = (await opening).tensors.get(name)!;
  return [...(await tensor.readRows(0, tensor.shape[0]))];
}

test("Gemma's norms, folded into 1 + weight, are unfolded; other models' are as they are", async () => {
  const path = "/model/layers.0/input_layernorm/SimplifiedLayerNormalization";
  const norm = node("SimplifiedLayerNormalization", path, ["x", NORM], ["y"]);
  expect(await values(open("gemma2", [norm], [SCALE]), NORM)).toEqual([0.5, -0.5]);
  expect(await values(open("gemma3_text", [norm], [SCALE]), NORM)).toEqual([0.5, -0.5]);
  expect(await values(open("llama", [norm], [SCALE]), NORM)).toEqual([1.5, 0.5]);
});

test("Gemma's norms that the graph adds 1 to are as they are", async () => {
  const path = "/model/layers.0/input_layernorm";
  const nodes = [
    node("Add", `${path}/Add`, [NORM, "one"], ["z"]),
    node("Mul", `${path}/Mul`, ["x", "z"], ["y"]),
  ];
  const one = initializer("one", [], Float32Array.of(1));
  expect(await values(open("gemma2", nodes, [SCALE, one]), NORM)).toEqual([1.5, 0.5]);
});

test("weights used within the branches of an If are found once", async () => {
  const weight = initializer("w", [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6));
  const name = "model.layers.0.self_attn.q_proj.weight";
  const product = node("MatMul", "/model/layers.0/self_attn/q_proj/MatMul", ["x", "w"], ["y"]);
  const branches = { then_branch: [product], else_branch: [product] };
  const choice = node("If", "/model/If", ["with_past"], ["out"], branches);
  expect(await values(open("llama", [choice], [weight]), name)).toEqual([1, 4, 2, 5, 3, 6]);
});

test("columns reordered by g_idx are refused by name, with a remedy", async () => {
  const path = "/model/layers.0/self_attn/q_proj/MatMul_Q4";
  const nodes = [
    node("MatMulNBits", path, ["x", "codes", "scales", "", "order"], ["y"], {
      N: 1,
      K: 32,
      bits: 4,
      block_size: 32,
    }),
  ];
  const initializers = [
    initializer("codes", [1, 1, 16], new Uint8Array(16)),
    initializer("scales", [1], Float32Array.of(1)),
    initializer("order", [32], new Uint8Array(32)),
  ];
  await expect(open("llama", nodes, initializers)).rejects.toThrow(/q_proj\/MatMul_Q4.*g_idx.*act-order/);
});
