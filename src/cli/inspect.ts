import type { Checkpoint, Tensor } from "../checkpoint/checkpoint.ts";
import { quantizationOf, quantizedNames } from "../checkpoint/quantization.ts";
import { elementsOf } from "../checkpoint/shape.ts";
import { HalftoneError } from "../errors.ts";
import { decoderFor } from "../models/registry.ts";
import type { inspectFlags } from "./flags.ts";
import { formatBytes, formatCount, significant } from "./format.ts";
import { openModel } from "./model.ts";
import { print, printJson, table } from "./output.ts";
import { runsOf } from "./runs.ts";
import type { Invocation } from "./verb.ts";

/** One weight as it is stored. */
interface Layer {
  readonly name: string;
  readonly shape: readonly number[];
  readonly scheme: string;
  /** Bits per weight, scales included. */
  readonly bits: number;
  readonly bytes: number;
}

/** `halftone inspect`: what a model is made of, without loading it. */
export async function inspect({ operands: [name], flags }: Invocation<typeof inspectFlags>): Promise<void> {
  const checkpoint = await openModel(name);
  try {
    const layers = layersOf(checkpoint);
    const parameters = sum(layers.map(({ shape }) => elementsOf(shape)));
    const bytes = sum(layers.map((layer) => layer.bytes));
    const bitsPerWeight = parameters === 0 ? 0 : (8 * bytes) / parameters;
    const architecture = String(checkpoint.config.model_type ?? "unknown");
    const { format } = checkpoint;
    const summary = { architecture, format, parameters, bitsPerWeight, bytes };
    if (flags.json) {
      const rows = layers.map(({ bytes: _, ...layer }) => layer);
      return await printJson({ ...summary, layers: rows });
    }
    const rows = (flags.all ? layers.map((layer) => ({ layer, count: 1 })) : merged(layers)).map(
      ({ layer, count }) => [
        layer.name,
        `${count > 1 ? `${count} x ` : ""}[${layer.shape.join(", ")}]`,
        layer.scheme,
        significant(layer.bits),
        formatBytes(layer.bytes * count),
      ],
    );
    await print(
      `${name}: ${architecture}, ${format}; ${formatCount(parameters)} parameters, ` +
        `${significant(bitsPerWeight)} bits per weight, ${formatBytes(bytes)}\n` +
        `${dimensions(checkpoint)}\n\n${table(["tensor", "shape", "scheme", "bits", "size"], rows, ["bits", "size"])}`,
    );
  } finally {
    await checkpoint.close();
  }
}

function dimensions(checkpoint: Checkpoint): string {
  try {
    const spec = decoderFor(checkpoint.source, checkpoint.config, checkpoint.tensors);
    const { heads, kvHeads, headSize } = spec.layers[0].attention;
    const tied = spec.head === spec.embedding ? ", head tied to it" : "";
    return (
      `${spec.layers.length} layers, hidden ${spec.hiddenSize}, ${heads} heads of ${headSize} (${kvHeads} for keys and values), ` +
      `MLP ${spec.layers[0].mlp.gate.rows}, vocabulary ${spec.vocabularySize}${tied}, context ${spec.contextLength}`
    );
  } catch (error) {
    if (error instanceof HalftoneError) return `it cannot be run: ${error.message}`;
    throw error;
  }
}

function layersOf(checkpoint: Checkpoint): Layer[] {
  const stored = Object.entries(quantizationOf(checkpoint)?.tensors ?? {});
  const parts = new Set<string>();
  const quantized = stored.flatMap(([name, { scheme, shape }]): Layer[] => {
    const tensors = Object.values(quantizedNames(name)).flatMap((part) => checkpoint.tensors.get(part) ?? []);
    for (const tensor of tensors) parts.add(tensor.name);
    return tensors.length === 0
      ? []
      : [layer(name, shape, scheme, sum(tensors.map((each) => each.byteLength)))];
  });
  const plain = [...checkpoint.tensors.values()]
    .filter(({ name }) => !parts.has(name))
    .map(({ name, shape, encoding, byteLength }: Tensor) => layer(name, shape, encoding, byteLength));
  return [...quantized, ...plain].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

function layer(name: string, shape: readonly number[], scheme: string, bytes: number): Layer {
  return { name, shape, scheme, bits: (8 * bytes) / Math.max(1, elementsOf(shape)), bytes };
}

/** Equal tensors of several layers share a row: `model.layers.0-29.mlp.up_proj.weight`. */
function merged(layers: readonly Layer[]): { layer: Layer; count: number }[] {
  const groups = new Map<string, { layer: Layer; numbers: number[] }>();
  for (const each of layers) {
    const number = /\.layers\.(\d+)\./.exec(each.name)?.[1];
    const pattern = each.name.replace(/\.layers\.\d+\./, ".layers.*.");
    const key = JSON.stringify([pattern, each.shape, each.scheme]);
    const group = groups.get(key) ?? { layer: { ...each, name: pattern }, numbers: [] };
    if (number !== undefined) group.numbers.push(Number(number));
    groups.set(key, group);
  }
  return [...groups.values()].map(({ layer: each, numbers }) => ({
    layer: { ...each, name: each.name.replace(".*.", `.${ranges(numbers)}.`) },
    count: Math.max(1, numbers.length),
  }));
}

/** `0-3,5` */
function ranges(numbers: readonly number[]): string {
  const runs = runsOf(numbers.toSorted((a, b) => a - b));
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
