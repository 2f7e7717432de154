import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { balanceCheckpoint } from "../../../src/engine/balance/balance.node.ts";
import { scalableInputs } from "../../../src/engine/balance/inputs.ts";
import { floatDecoder } from "../../../src/engine/quantize/plan.ts";
import { models, openFixture } from "../../models/fixture.ts";
import { relativeError } from "../../relativeError.ts";
import { floatLogits, scattered } from "./scattered.ts";

it.each(readdirSync(models))("%s computes the same when balanced, however it is scaled", async (name) => {
  const checkpoint = await openFixture(name);
  const expected = await floatLogits(checkpoint);
  const balanced = await balanceCheckpoint(checkpoint, { threads: 1 });
  expect(balanced.balance).toMatchObject({ exponent: 0.5, tokens: 504 });
  expect(relativeError(await floatLogits(balanced), expected)).toBeLessThan(1e-5);
  expect(relativeError(await floatLogits(scattered(checkpoint)), expected)).toBeLessThan(1e-5);
  // Nothing is folded twice.
  expect(await balanceCheckpoint(balanced)).toBe(balanced);
});

it("leaves inputs alone that no norm makes", async () => {
  const kinds = async (name: string) => {
    const checkpoint = await openFixture(name);
    const [first, ...more] = scalableInputs(floatDecoder(checkpoint)).map(({ kind }) => kind);
    return [first, ...more.slice(0, more.indexOf(first))];
  };
  expect(await kinds("gemma2")).toEqual(["qkv", "o", "gateUp", "down"]);
  expect(await kinds("olmo2")).toEqual(["o", "down"]);
});

it.each(["phi3-partial", "qwen2-bf16", "gemma2"])("%s: rows are scaled when they are read", async (name) => {
  const checkpoint = await openFixture(name);
  const { tensors } = scattered(checkpoint);
  let changed = 0;
  for (const tensor of tensors.values()) {
    const original = checkpoint.tensors.get(tensor.name)!;
    const [rows] = tensor.shape;
    const whole = await tensor.readRows(0, rows);
    const size = whole.length / rows;
    const [start, end] = [Math.floor(rows / 3), Math.ceil(rows / 2)];
    const target = new Float32Array((end - start) * size);
    expect(await tensor.readRows(start, end)).toEqual(whole.slice(start * size, end * size));
    await tensor.readRows(start, end, target);
    expect(target).toEqual(whole.slice(start * size, end * size));
    const { shape, encoding, byteLength } = original;
    expect(tensor).toMatchObject({ shape, encoding, byteLength });
    if (tensor === original) continue;
    changed++;
    expect(tensor.readBytes).toBeUndefined();
    expect(whole).not.toEqual(await original.readRows(0, rows));
  }
  expect(changed).toBeGreaterThan(0);
  expect(tensors.get("model.norm.weight")).toBe(checkpoint.tensors.get("model.norm.weight"));
});

it("finds nothing in a model whose inputs are all zero", async () => {
  const checkpoint = await openFixture("llama-linear");
  const tensors = new Map(checkpoint.tensors);
  const zeros = async (start: number, end: number, target = new Float32Array(end - start)) => target.fill(0);
  for (const [name, tensor] of tensors) {
    if (tensor.shape.length === 1) tensors.set(name, { ...tensor, readRows: zeros });
  }
  const balanced = await balanceCheckpoint({ ...checkpoint, tensors }, { threads: 1 });
  const name = "model.layers.0.self_attn.q_proj.weight";
  expect(await balanced.tensors.get(name)!.readRows(0, 4)).toEqual(await tensors.get(name)!.readRows(0, 4));
});

it("refuses a quantized model", async () => {
  const checkpoint = await openFixture("llama-linear");
  const quantization_config = { quant_method: "halftone", version: 1, tensors: {} };
  const quantized = { ...checkpoint, config: { ...checkpoint.config, quantization_config } };
  await expect(balanceCheckpoint(quantized)).rejects.toThrow(/is quantized already/);
});
