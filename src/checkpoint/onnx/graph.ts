import { PbfReader } from "pbf";
import { CheckpointError, UnsupportedError } from "../../errors.ts";
import type { ByteSource } from "../checkpoint.ts";
import { decodeUtf8 } from "../json.ts";
import { walkMessage } from "./protobuf.ts";
import { type ExternalOpener, type OnnxTensor, readTensor } from "./tensor.ts";

/** A node of the graph, or of a branch inside it. Field numbers: onnx.proto3, message NodeProto. */
export interface GraphNode {
  readonly op: string;
  readonly name: string;
  readonly inputs: string[];
  readonly outputs: string[];
  readonly ints: Map<string, number>;
  readonly lists: Map<string, number[]>;
  /** Where the value of a Constant lies in the file. */
  constant?: { start: number; end: number };
}

/** An ONNX graph without its weights' data. */
export interface Graph {
  readonly nodes: GraphNode[];
  readonly initializers: Map<string, OnnxTensor>;
  readonly producers: Map<string, GraphNode>;
  readonly consumers: Map<string, GraphNode[]>;
}

/** A node is parsed in memory; larger ones carry data that no exporter of language models puts there. */
const MAX_NODE_BYTES = 64 * 2 ** 20;
const MAX_DEPTH = 8;
/** Nodes, names, attributes and list elements of a graph: some fifty times what a large model's export has. */
const MAX_PARTS = 500_000;
/** Each costs a read and some hundred bytes. */
const MAX_NODES = 65_536;
const MAX_INITIALIZERS = 65_536;

/** Counts what a graph makes us keep: a byte of the file may cost a hundred of memory. */
class Budget {
  readonly #file: string;
  #parts = MAX_PARTS;
  #nodes = MAX_NODES;

  constructor(file: string) {
    this.#file = file;
  }

  node(offset: number): void {
    if (--this.#nodes < 0) throw this.#exceeded(`more than ${MAX_NODES} nodes`, offset);
  }

  parts(count: number, offset: number): void {
    this.#parts -= count;
    if (this.#parts < 0) throw this.#exceeded(`more than ${MAX_PARTS} names, attributes and numbers`, offset);
  }

  #exceeded(what: string, offset: number): CheckpointError {
    return new CheckpointError(this.#file, `a graph of ${what}`, { offset });
  }
}

/** Reads the graph of a ModelProto; Constants become initializers of their output's name. */
export async function readGraph(source: ByteSource, external: ExternalOpener): Promise<Graph> {
  const nodes: GraphNode[] = [];
  const initializers = new Map<string, OnnxTensor>();
  const budget = new Budget(source.name);
  const add = (name: string, tensor: OnnxTensor | undefined, offset: number) => {
    if (tensor === undefined) return;
    if (initializers.has(name)) {
      throw new CheckpointError(source.name, `two initializers are named ${name.slice(0, 200)}`, { offset });
    }
    initializers.set(name, tensor);
  };
  let found = false;
  let read = 0;
  for await (const top of walkMessage(source, 0, source.size)) {
    if (top.number !== 7 || !top.delimited) continue;
    found = true;
    for await (const field of walkMessage(source, top.start, top.end)) {
      if (!field.delimited) continue;
      if (field.number === 5) {
        if (++read > MAX_INITIALIZERS) {
          const problem = `a graph of more than ${MAX_INITIALIZERS} initializers`;
          throw new CheckpointError(source.name, problem, { offset: field.start });
        }
        const tensor = await readTensor(source, field.start, field.end, external);
        add(tensor?.name ?? "", tensor, field.start);
      } else if (field.number === 1) {
        if (field.end - field.start > MAX_NODE_BYTES) {
          throw new UnsupportedError(
            `${source.name}: a node of ${field.end - field.start} bytes; export it anew`,
          );
        }
        const bytes = await source.read(field.start, field.end - field.start);
        parseNode(bytes, field.start, source.name, nodes, budget, 0);
      }
    }
  }
  if (!found) throw new CheckpointError(source.name, "holds no ONNX graph", { offset: 0 });
  for (const { constant, outputs } of nodes) {
    if (constant === undefined || initializers.has(outputs[0])) continue;
    add(outputs[0], await readTensor(source, constant.start, constant.end, external), constant.start);
  }
  return { nodes, initializers, ...connect(nodes) };
}

function connect(nodes: readonly GraphNode[]): Pick<Graph, "producers" | "consumers"> {
  const producers = new Map<string, GraphNode>();
  const consumers = new Map<string, GraphNode[]>();
  for (const node of nodes) {
    // Branches of an If may repeat names; they hold the same layers, so the first serves.
    for (const output of node.outputs) if (!producers.has(output)) producers.set(output, node);
    for (const input of node.inputs) {
      const list = consumers.get(input);
      if (list === undefined) consumers.set(input, [node]);
      else list.push(node);
    }
  }
  return { producers, consumers };
}

function parseNode(
  bytes: Uint8Array,
  offset: number,
  file: string,
  nodes: GraphNode[],
  budget: Budget,
  depth: number,
): void {
  if (depth > MAX_DEPTH) throw new CheckpointError(file, "graphs nested too deeply", { offset });
  budget.node(offset);
  const node: GraphNode = { op: "", name: "", inputs: [], outputs: [], ints: new Map(), lists: new Map() };
  const fields: { op: string; name: string } = { op: "", name: "" };
  const branches: [number, Uint8Array][] = [];
  eachField(bytes, offset, file, (number, payload, at) => {
    budget.parts(1, at);
    if (number === 1) node.inputs.push(decodeUtf8(payload, file, at));
    else if (number === 2) node.outputs.push(decodeUtf8(payload, file, at));
    else if (number === 3) fields.name = decodeUtf8(payload, file, at);
    else if (number === 4) fields.op = decodeUtf8(payload, file, at);
    else if (number === 5) branches.push(...parseAttribute(node, payload, at, file, budget));
  });
  nodes.push(Object.assign(node, fields));
  for (const [at, graph] of branches) {
    eachField(graph, at, file, (number, payload, start) => {
      budget.parts(1, start);
      if (number === 1) parseNode(payload, start, file, nodes, budget, depth + 1);
    });
  }
}

/** Adds an attribute to its node and returns the graphs in it. Field numbers: message AttributeProto. */
function parseAttribute(
  node: GraphNode,
  bytes: Uint8Array,
  offset: number,
  file: string,
  budget: Budget,
): [number, Uint8Array][] {
  let name = "";
  let int: number | undefined;
  const list: number[] = [];
  let value: { start: number; end: number } | undefined;
  const graphs: [number, Uint8Array][] = [];
  eachField(bytes, offset, file, (number, payload, at, varint) => {
    budget.parts(1, at);
    if (number === 1) name = decodeUtf8(payload, file, at);
    else if (number === 3) int = varint;
    else if (number === 5) value = { start: at, end: at + payload.length };
    else if (number === 6) graphs.push([at, payload]);
    else if (number === 8 && varint !== undefined) list.push(varint);
    else if (number === 8) {
      budget.parts(payload.length, at);
      const reader = new PbfReader(payload);
      while (reader.pos < payload.length) list.push(reader.readVarint(true));
    }
  });
  if (int !== undefined) node.ints.set(name, int);
  if (list.length > 0) node.lists.set(name, list);
  if (value !== undefined && name === "value" && node.outputs.length > 0) node.constant = value;
  return graphs;
}

/** Calls back for each field of a message in memory; `varint` is set for wire type 0. */
function eachField(
  bytes: Uint8Array,
  offset: number,
  file: string,
  visit: (number: number, payload: Uint8Array, at: number, varint?: number) => void,
): void {
  const reader = new PbfReader(bytes);
  const empty = bytes.subarray(0, 0);
  while (reader.pos < bytes.length) {
    const start = reader.pos;
    try {
      const number = reader.nextField(bytes.length);
      if (reader.type === 0) {
        const value = reader.readVarint(true);
        if (reader.pos <= bytes.length) visit(number, empty, offset + start, value);
      } else if (reader.type === 2) {
        const length = reader.readVarint();
        const at = reader.pos;
        reader.pos = at + length;
        if (reader.pos <= bytes.length) visit(number, bytes.subarray(at, at + length), offset + at);
      } else reader.skip(reader.type);
    } catch (cause) {
      if (cause instanceof CheckpointError) throw cause;
      throw new CheckpointError(file, "broken protobuf", { offset: offset + start, cause });
    }
    if (reader.pos > bytes.length) {
      throw new CheckpointError(file, "broken protobuf: a field leaves its message", {
        offset: offset + start,
      });
    }
  }
}
