/**
 * Which files of a repository a model needs. Safetensors are preferred, then GGUF, then ONNX;
 * a quantization in the model id chooses among GGUF and ONNX files.
 *
 * @module
 */
import { CheckpointError, UnsupportedError, UsageError } from "../../errors.ts";
import { judgePath } from "./listing.ts";

/** The files to fetch, and which of them to open. */
export interface Selection {
  readonly format: "safetensors" | "gguf" | "onnx";
  /** Every file needed; the shards that `index` names come on top. */
  readonly files: readonly string[];
  /** `model.safetensors.index.json` when the weights are sharded. */
  readonly index: string | undefined;
  /** The file to open: first part of a GGUF, the ONNX graph; undefined when the folder is opened. */
  readonly entry: string | undefined;
}

/**
 * GGUF quantizations tried when the id names none, best compromise of size and quality first:
 * around 4.5 bits, then more bits, then fewer, then unquantized. One that stands alone is taken whatever it is.
 */
const GGUF_PREFERENCE: readonly string[] = [
  ...["Q4_K_M", "UD-Q4_K_XL", "Q4_K_L", "Q4_K_S", "IQ4_NL", "IQ4_XS", "Q4_0", "Q4_1", "MXFP4", "MXFP4_MOE"],
  ...["Q5_K_M", "UD-Q5_K_XL", "Q5_K_L", "Q5_K_S", "Q5_0", "Q5_1", "Q6_K", "UD-Q6_K_XL", "Q6_K_L", "Q8_0"],
  ...["Q3_K_L", "Q3_K_M", "UD-Q3_K_XL", "IQ3_M", "IQ3_S", "Q3_K_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "IQ2_M"],
  ...["BF16", "F16", "F32"],
];

/** ONNX variants tried when the id names none, as transformers.js names them; "" is the float32 graph. */
const ONNX_PREFERENCE: readonly string[] = [
  ...["quantized", "int8", "uint8", "q4f16", "q4", "fp16", "", "bnb4"],
];

const SMALL = [
  ...["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"],
  ...["special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json"],
];
/** Only of use where there is no tokenizer.json. */
const OLD_TOKENIZER = ["tokenizer.model", "vocab.json", "merges.txt", "vocab.txt"];
const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";
/** Quantization residual of a Halftone checkpoint, optional. */
const RESIDUAL = "residual.safetensors";
const GGUF_LABEL =
  /(?:^|[-._])((?:UD-)?(?:I?Q\d_(?:K(?:_[A-Z]{1,3})?|[A-Z]{1,3}|\d)|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|F32))$/i;

/**
 * Chooses the files of a model.
 *
 * @param repository how to call it in messages.
 * @param paths every file of the repository (or of a cached snapshot).
 * @param quant the quantization asked for, case ignored.
 * @throws UsageError listing the choices when none or several fit; UnsupportedError when there are no weights
 *   that Halftone reads.
 */
export function selectFiles(repository: string, paths: readonly string[], quant?: string): Selection {
  const all = new Set(paths);
  const ggufs = findGgufs(paths);
  const graphs = findGraphs(paths);
  if (quant !== undefined) return selectQuant(repository, all, ggufs, graphs, quant);
  if (all.has("config.json") && (all.has(WEIGHTS) || all.has(INDEX))) {
    const index = all.has(WEIGHTS) ? undefined : INDEX;
    const weights = [index ?? WEIGHTS, ...(all.has(RESIDUAL) ? [RESIDUAL] : [])];
    return { format: "safetensors", files: [...smallFiles(all), ...weights], index, entry: undefined };
  }
  if (ggufs.length > 0) return ggufSelection(repository, preferGguf(repository, ggufs));
  for (const variant of ONNX_PREFERENCE) {
    const graph = graphs.find((candidate) => candidate.variant === variant);
    if (graph !== undefined) return onnxSelection(all, graph);
  }
  throw noWeights(repository, paths);
}

/**
 * The shards that a `model.safetensors.index.json` names, each once.
 *
 * @throws CheckpointError when it is no such index or names a file outside the folder.
 */
export function shardsOf(json: unknown, file: string): string[] {
  const map = (json as { weight_map?: unknown } | null)?.weight_map;
  if (typeof map !== "object" || map === null || Array.isArray(map))
    throw new CheckpointError(file, 'no object "weight_map"');
  const shards = new Set<string>();
  for (const shard of Object.values(map)) {
    if (typeof shard !== "string" || judgePath(shard) !== "plain")
      throw new CheckpointError(file, `${JSON.stringify(shard)} is no name of a shard`);
    shards.add(shard);
  }
  return [...shards];
}

interface Gguf {
  readonly label: string;
  /** Path without number of part and extension. */
  readonly stem: string;
  readonly parts: Map<number, string>;
  readonly count: number;
}

interface Graph {
  readonly path: string;
  readonly variant: string;
  readonly data: readonly string[];
}

function smallFiles(all: ReadonlySet<string>): string[] {
  const names = all.has("tokenizer.json") ? SMALL : [...SMALL, ...OLD_TOKENIZER];
  return names.filter((name) => all.has(name));
}

function findGgufs(paths: readonly string[]): Gguf[] {
  const groups = new Map<string, Gguf>();
  for (const path of paths) {
    const match = /^(.*?)(?:-(\d{5})-of-(\d{5}))?\.gguf$/i.exec(path);
    const name = baseName(path);
    // Vision projectors and importance matrices are GGUF files too, but no language models.
    if (match === null || /^mmproj|[-._]mmproj[-._]|imatrix/i.test(name)) continue;
    const [, stem, part, count] = match;
    const key = `${stem} ${count ?? ""}`;
    const group = groups.get(key) ?? {
      label: ggufLabel(stem),
      stem,
      parts: new Map(),
      count: Number(count ?? 1),
    };
    group.parts.set(Number(part ?? 1), path);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function ggufLabel(stem: string): string {
  const name = baseName(stem);
  return (GGUF_LABEL.exec(name)?.[1] ?? name).toUpperCase();
}

function findGraphs(paths: readonly string[]): Graph[] {
  return paths.flatMap((path) => {
    const match = /^((?:onnx\/)?(?:decoder_model_merged|model))(?:_([a-z0-9]+))?\.onnx$/.exec(path);
    if (match === null) return [];
    const data = paths.filter(
      (other) => other.startsWith(path) && /^(?:_data(?:_\d+)?|\.data)$/.test(other.slice(path.length)),
    );
    return [{ path, variant: match[2] ?? "", data }];
  });
}

function selectQuant(
  repository: string,
  all: ReadonlySet<string>,
  ggufs: readonly Gguf[],
  graphs: readonly Graph[],
  quant: string,
): Selection {
  const wanted = quant.toUpperCase();
  const exact = ggufs.filter((group) => group.label === wanted);
  const matches = exact.length > 0 ? exact : ggufs.filter((group) => endsWithWord(group.stem, wanted));
  if (matches.length === 1) return ggufSelection(repository, matches[0]);
  const variant = { q8: "quantized", fp32: "" }[quant.toLowerCase()] ?? quant.toLowerCase();
  const graph = graphs.find((candidate) => candidate.variant === variant);
  if (matches.length === 0 && graph !== undefined) return onnxSelection(all, graph);
  const problem = matches.length > 1 ? `${matches.length} files are` : "no file is";
  throw new UsageError(
    `${repository}: ${problem} quantized as "${quant}"; ${choices(matches, ggufs, graphs)}`,
  );
}

function choices(matches: readonly Gguf[], ggufs: readonly Gguf[], graphs: readonly Graph[]): string {
  if (matches.length > 1)
    return `name one file: ${matches.map((group) => `:${baseName(group.stem)}`).join(", ")}`;
  const names = [...ggufs.map((group) => group.label), ...graphs.map((graph) => graph.variant || "fp32")];
  return names.length > 0
    ? `choose among ${[...new Set(names)].sort().join(", ")}`
    : "leave the quantization away";
}

function preferGguf(repository: string, ggufs: readonly Gguf[]): Gguf {
  if (ggufs.length === 1) return ggufs[0];
  for (const label of GGUF_PREFERENCE) {
    const matches = ggufs.filter((group) => group.label === label);
    if (matches.length === 1) return matches[0];
    if (matches.length > 1)
      throw new UsageError(
        `${repository}: ${matches.length} files are quantized as ${label}; ${choices(matches, ggufs, [])}`,
      );
  }
  const labels = ggufs.map((group) => `:${group.label}`).join(", ");
  throw new UsageError(`${repository}: which of its GGUF files? add one of ${labels} to the name`);
}

function ggufSelection(repository: string, group: Gguf): Selection {
  const files: string[] = [];
  for (let part = 1; part <= group.count; part++) {
    const path = group.parts.get(part);
    if (path === undefined)
      throw new CheckpointError(
        `${repository}/${group.stem}.gguf`,
        `part ${part} of ${group.count} is missing`,
      );
    files.push(path);
  }
  if (files.length === 0)
    throw new CheckpointError(`${repository}/${group.stem}.gguf`, "it claims to have 0 parts");
  return { format: "gguf", files, index: undefined, entry: files[0] };
}

function onnxSelection(all: ReadonlySet<string>, graph: Graph): Selection {
  const files = [...smallFiles(all), graph.path, ...graph.data];
  return { format: "onnx", files, index: undefined, entry: graph.path };
}

function noWeights(repository: string, paths: readonly string[]): UnsupportedError {
  const weights = paths
    .filter((path) => /\.(?:safetensors|bin|pt|pth|ckpt|h5|msgpack|onnx)$/.test(path))
    .slice(0, 8);
  const found = weights.length > 0 ? ` (it has ${weights.join(", ")})` : "";
  return new UnsupportedError(
    `${repository}: no config.json with model.safetensors, no GGUF and no ONNX model${found}; choose a repository that has one of them`,
  );
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function endsWithWord(stem: string, wanted: string): boolean {
  const name = baseName(stem).toUpperCase();
  return name === wanted || (name.endsWith(wanted) && /[-.]/.test(name[name.length - wanted.length - 1]));
}
