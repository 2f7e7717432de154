import { CheckpointError, UsageError } from "../../errors.ts";
import type { ByteSource, Checkpoint, Tensor } from "../checkpoint.ts";
import type { FileSet } from "../huggingface/fileSet.ts";
import { readModelFiles } from "../huggingface/folder.ts";
import { blockTensor } from "./blocks.ts";
import { splitFused } from "./fused.ts";
import { readGraph } from "./graph.ts";
import { type LastRead, plainTensor } from "./plain.ts";
import { findWeights } from "./weights.ts";

/**
 * Opens an ONNX export of a model folder: weights from `path` (such as
 * `onnx/model.onnx`, external data beside it), everything else from the folder.
 */
export async function openOnnx(files: FileSet, path: string): Promise<Checkpoint> {
  const modelFiles = await readModelFiles(files);
  const source = await files.open(path);
  if (source === undefined)
    throw new UsageError(`${files.name}: no ${path}; name an ONNX file of the folder`);
  const externals = new Map<string, Promise<ByteSource>>();
  const close = async () => {
    const opened = await Promise.allSettled(externals.values());
    await source.close();
    for (const result of opened) if (result.status === "fulfilled") await result.value.close();
  };
  const openBeside = (location: string): Promise<ByteSource> => {
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    const known = externals.get(location);
    if (known !== undefined) return known;
    const opening = files.open(folder + location).then((found) => {
      if (found !== undefined) return found;
      throw new CheckpointError(source.name, `its weights are in ${location}, which is not beside it`, {
        remedy: "fetch the missing file",
      });
    });
    externals.set(location, opening);
    return opening;
  };
  try {
    const { config } = modelFiles;
    const graph = await readGraph(source, openBeside);
    const gemma = String(config.model_type).startsWith("gemma");
    const last: LastRead = {};
    let tensors = new Map<string, Tensor>();
    for (const [name, weight] of findWeights(graph, source.name, gemma)) {
      const tensor =
        weight.kind === "plain"
          ? plainTensor(name, weight, source.name, last)
          : blockTensor(name, weight, source.name);
      tensors.set(name, tensor);
    }
    tensors = splitFused(tensors, config, source.name);
    const tied = tieHead(tensors, config.tie_word_embeddings === true);
    if (!tensors.has("model.embed_tokens.weight")) {
      throw new CheckpointError(source.name, "holds no embedding of a language model", {
        remedy: "name the ONNX export of a decoder-only model, with its embedding",
      });
    }
    const openedConfig = { ...config, tie_word_embeddings: tied };
    return { source: files.name, format: "onnx", ...modelFiles, config: openedConfig, tensors, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * A tied head may be the only copy (its transpose serves both), or, in quantized exports, a second one that was
 * rounded on its own: then the graph multiplies by other weights than it looks up, and the model is untied.
 */
function tieHead(tensors: Map<string, Tensor>, tied: boolean): boolean {
  const head = tensors.get("lm_head.weight");
  const name = "model.embed_tokens.weight";
  if (!tied || head === undefined) return tied;
  const embedding = tensors.get(name);
  if (embedding !== undefined && /^[IU]\d|^Q/.test(head.encoding)) return false;
  tensors.delete("lm_head.weight");
  if (embedding === undefined) tensors.set(name, { ...head, name });
  return true;
}
