import { CheckpointError } from "../../errors.ts";
import type { Graph, GraphNode } from "./graph.ts";
import { isEmbedding, isNorm, moduleOf, moduleOfInitializer } from "./names.ts";
import type { OnnxTensor } from "./tensor.ts";

/** Scale and zero point of integer weights: per tensor, per index of `axis`, or per block along it. */
export interface Affine {
  readonly scale: OnnxTensor;
  readonly zero?: OnnxTensor;
  readonly axis: number;
  /** 0: not blocked. */
  readonly blockSize: number;
}

/** A tensor of plain elements, perhaps quantized, perhaps stored transposed. */
export interface PlainWeight {
  readonly kind: "plain";
  readonly tensor: OnnxTensor;
  readonly transposed: boolean;
  readonly affine?: Affine;
  /** Added to every value: -1 where the exporter folded Gemma's 1 + weight. */
  readonly shift?: number;
}

/** Rows of packed codes with a scale for each block of columns (MatMulNBits, GatherBlockQuantized). */
export interface BlockWeight {
  readonly kind: "blocks";
  readonly tensor: OnnxTensor;
  readonly scales: OnnxTensor;
  readonly zeros?: OnnxTensor;
  readonly rows: number;
  readonly columns: number;
  readonly bits: number;
  readonly blockSize: number;
}

export type Weight = PlainWeight | BlockWeight;

const MAX_TRACE = 8;

/**
 * Finds each parameter by the nodes that compute with it, and names it by their scope.
 * `gemma` says that norms multiply by 1 + weight.
 */
export function findWeights(graph: Graph, file: string, gemma: boolean): Map<string, Weight> {
  const found = new Map<string, Weight>();
  const claim = (module: string | undefined, kind: "weight" | "bias", weight: Weight | undefined) => {
    if (module === undefined || weight === undefined) return;
    const name = `${module}.${kind}`;
    const other = found.get(name);
    if (other !== undefined && other.tensor !== weight.tensor) {
      throw new CheckpointError(
        file,
        `two initializers, ${other.tensor.name} and ${weight.tensor.name}, serve as ${name}`,
      );
    }
    if (other === undefined) found.set(name, weight);
  };
  for (const node of graph.nodes) {
    const module = (weight: Weight | undefined) =>
      moduleOf(node.name) ?? (weight && moduleOfInitializer(weight.tensor.name));
    const input = (i: number) => trace(graph, node.inputs[i] ?? "");
    const vector = (i: number) => ofRank(input(i), 1);
    const norm = (i: number) => {
      const weight = vector(i);
      const name = module(weight);
      if (name !== undefined && isNorm(name)) claim(name, "weight", gemma ? shifted(weight, -1) : weight);
    };
    switch (node.op) {
      case "MatMul":
      case "MatMulInteger":
      case "DynamicQuantizeMatMul":
      case "MatMulIntegerToFloat":
      case "FusedMatMul":
      case "Gemm": {
        const weight = linearWeight(graph, node, file);
        claim(module(weight), "weight", weight);
        if (node.op === "Gemm") claim(module(weight), "bias", vector(2));
        break;
      }
      case "MatMulNBits": {
        const weight = matMulNBits(graph, node, file);
        claim(module(weight), "weight", weight);
        claim(module(weight), "bias", vector(5));
        break;
      }
      case "Gather": {
        const weight = gatherWeight(graph, node);
        const name = module(weight);
        if (name !== undefined && isEmbedding(name)) claim(name, "weight", weight);
        break;
      }
      case "GatherBlockQuantized": {
        const weight = gatherBlocks(graph, node, file);
        claim(module(weight), "weight", weight);
        break;
      }
      case "SimplifiedLayerNormalization":
      case "RMSNormalization":
      case "LayerNormalization":
        norm(1);
        if (node.op === "LayerNormalization") claim(module(vector(2)), "bias", vector(2));
        break;
      case "SkipSimplifiedLayerNormalization":
      case "SkipLayerNormalization":
        norm(2);
        if (node.op === "SkipLayerNormalization") claim(module(vector(3)), "bias", vector(3));
        break;
      case "Mul":
        norm(0);
        norm(1);
        break;
      case "Add": {
        const sides = [vector(0), vector(1)];
        const weight = sides[0] ?? sides[1];
        const name = module(weight);
        if (name === undefined || weight === undefined) break;
        // 1 + weight, not folded, has a constant on both sides; a bias is added to what was computed.
        if (!isNorm(name)) claim(name, "bias", weight);
        else if (gemma && input(0) !== undefined && input(1) !== undefined) claim(name, "weight", weight);
        break;
      }
    }
  }
  return found;
}

/** Follows a value back to an initializer through what does not change its numbers. */
function trace(graph: Graph, value: string): PlainWeight | undefined {
  let name = value;
  let transposed = false;
  let affine: Affine | undefined;
  for (let i = 0; i < MAX_TRACE; i++) {
    const tensor = graph.initializers.get(name);
    if (tensor !== undefined) return { kind: "plain", tensor, transposed, affine };
    const producer = graph.producers.get(name);
    if (producer === undefined) return undefined;
    if (producer.op === "DequantizeLinear" && affine === undefined) affine = dequantizer(graph, producer);
    else if (producer.op === "Transpose") {
      transposed = !transposed;
      if (affine !== undefined) affine = { ...affine, axis: 1 - affine.axis };
    } else if (producer.op !== "Identity" && producer.op !== "Cast") return undefined;
    name = producer.inputs[0] ?? "";
  }
  return undefined;
}

function dequantizer(graph: Graph, node: GraphNode): Affine | undefined {
  const scale = graph.initializers.get(node.inputs[1] ?? "");
  if (scale === undefined) return undefined;
  const zero = graph.initializers.get(node.inputs[2] ?? "");
  return { scale, zero, axis: node.ints.get("axis") ?? 1, blockSize: node.ints.get("block_size") ?? 0 };
}

/** The weight of x . W, turned to [out, in]. */
function linearWeight(graph: Graph, node: GraphNode, file: string): PlainWeight | undefined {
  const weight = ofRank(trace(graph, node.inputs[1] ?? ""), 2);
  if (weight === undefined) return undefined;
  const storedOutIn =
    node.op === "Gemm" || node.op === "FusedMatMul" ? (node.ints.get("transB") ?? 0) !== 0 : false;
  const turned = { ...weight, transposed: weight.transposed === storedOutIn };
  const places: Record<string, { scale?: string; zero?: string }> = {
    MatMulInteger: { zero: node.inputs[3] },
    DynamicQuantizeMatMul: { scale: node.inputs[2], zero: node.inputs[3] },
    MatMulIntegerToFloat: { scale: node.inputs[3], zero: node.inputs[5] },
  };
  const place = places[node.op];
  if (place === undefined) return turned;
  const scale = graph.initializers.get(place.scale ?? "") ?? scaleOfProduct(graph, node);
  if (scale === undefined) {
    throw new CheckpointError(file, `initializer ${weight.tensor.name}, used by ${node.name}, has no scale`);
  }
  return {
    ...turned,
    affine: { scale, zero: graph.initializers.get(place.zero ?? ""), axis: 1, blockSize: 0 },
  };
}

/** An integer product is cast, then multiplied by the activation's scale times the weight's: finds the latter. */
function scaleOfProduct(graph: Graph, node: GraphNode): OnnxTensor | undefined {
  const users = (of: GraphNode) => of.outputs.flatMap((output) => graph.consumers.get(output) ?? []);
  const products = users(node).flatMap((user) => (user.op === "Cast" ? users(user) : [user]));
  for (const product of products.filter((user) => user.op === "Mul")) {
    for (const input of product.inputs) {
      const direct = graph.initializers.get(input);
      if (direct !== undefined) return direct;
      const scales = graph.producers.get(input);
      if (scales?.op !== "Mul") continue;
      for (const factor of scales.inputs) {
        const scale = graph.initializers.get(factor);
        if (scale !== undefined) return scale;
      }
    }
  }
  return undefined;
}

/** Rows are looked up; integer ones are dequantized before or after. */
function gatherWeight(graph: Graph, node: GraphNode): PlainWeight | undefined {
  const weight = ofRank(trace(graph, node.inputs[0] ?? ""), 2);
  if (weight === undefined || weight.affine !== undefined) return weight;
  const next = graph.consumers.get(node.outputs[0] ?? "")?.find((user) => user.op === "DequantizeLinear");
  return next === undefined ? weight : { ...weight, affine: dequantizer(graph, next) };
}

function matMulNBits(graph: Graph, node: GraphNode, file: string): BlockWeight | undefined {
  const [tensor, scales, zeros] = [1, 2, 3].map((i) => graph.initializers.get(node.inputs[i] ?? ""));
  if (tensor === undefined) return undefined;
  if (scales === undefined) throw new CheckpointError(file, `initializer ${tensor.name} has no scales`);
  if (graph.initializers.has(node.inputs[4] ?? "")) {
    throw new CheckpointError(file, `${node.name} reorders its columns by g_idx, which is not supported`, {
      remedy: "export the model without act-order",
    });
  }
  const [rows, columns] = ["N", "K"].map((key) => node.ints.get(key) ?? 0);
  const [bits, blockSize] = [node.ints.get("bits") ?? 4, node.ints.get("block_size") ?? 0];
  return { kind: "blocks", tensor, scales, zeros, rows, columns, bits, blockSize };
}

function gatherBlocks(graph: Graph, node: GraphNode, file: string): BlockWeight | undefined {
  const [tensor, , scales, zeros] = [0, 1, 2, 3].map((i) => graph.initializers.get(node.inputs[i] ?? ""));
  if (tensor === undefined) return undefined;
  if (scales === undefined) throw new CheckpointError(file, `initializer ${tensor.name} has no scales`);
  const bits = tensor.type === "U8" ? (node.ints.get("bits") ?? 4) : 4;
  const columns = tensor.type === "U8" ? (tensor.shape[1] ?? 0) * (8 / bits) : (tensor.shape[1] ?? 0);
  const blockSize = node.ints.get("block_size") ?? 128;
  return { kind: "blocks", tensor, scales, zeros, rows: tensor.shape[0] ?? 0, columns, bits, blockSize };
}

function ofRank(weight: PlainWeight | undefined, rank: number): PlainWeight | undefined {
  return weight?.tensor.shape.length === rank ? weight : undefined;
}

function shifted(weight: PlainWeight | undefined, shift: number): PlainWeight | undefined {
  return weight && { ...weight, shift };
}
