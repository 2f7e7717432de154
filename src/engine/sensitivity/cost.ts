import type { Backend } from "../../backends/backend.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { productOperation } from "../gradient/product.ts";
import { weightTensors } from "./tensors.ts";

/** Multiplications per token of linear layers and head when running from each tensor's part on, and of everything. */
function multiplications(spec: DecoderSpec): { readonly all: number; readonly from: readonly number[] } {
  const tensors = weightTensors(spec);
  const head = spec.vocabularySize * spec.hiddenSize;
  const place = (part: number | "embedding" | "head") =>
    part === "embedding" ? 0 : part === "head" ? spec.layers.length : part;
  const after = new Array<number>(spec.layers.length + 1).fill(head);
  for (let index = spec.layers.length - 1; index >= 0; index--) {
    const own = tensors.filter(({ part }) => part === index);
    after[index] = after[index + 1] + own.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  }
  return { all: after[0], from: tensors.map(({ part }) => after[place(part)]) };
}

/** Multiplications that trials of every tensor take for each token, the unchanged run included. */
export function noiseMultiplications(spec: DecoderSpec, norms: number): number {
  const { all, from } = multiplications(spec);
  return all + norms * from.reduce((sum, count) => sum + count, 0);
}

/** Multiplications that a pass forth and back takes for each token: the layers three times and the rows' norms. */
export function gradientMultiplications(spec: DecoderSpec): number {
  return 4 * multiplications(spec).all;
}

/** Multiplications per second of products with float weights: a short measurement. */
export async function multiplicationRate(backend: Backend): Promise<number> {
  const [tokens, size] = [256, 768];
  const readRows = async (start: number, end: number) => new Float32Array((end - start) * size).fill(0.5);
  const weight = await backend.loadLinear({ scheme: "f32", rows: size, columns: size, readRows });
  const input = backend.allocate(tokens * size * 4);
  const output = backend.allocate(tokens * size * 4);
  const program = backend.record([productOperation(input, tokens, weight, output)]);
  await backend.run(program);
  const started = performance.now();
  let runs = 0;
  while (performance.now() - started < 100) {
    await backend.run(program);
    runs++;
  }
  const seconds = (performance.now() - started) / 1000;
  program.free();
  backend.freeLinear(weight);
  backend.free(input);
  backend.free(output);
  return (runs * tokens * size * size) / seconds;
}
