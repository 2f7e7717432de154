import { CheckpointError } from "../../errors.ts";
import type { Tensor } from "../checkpoint.ts";
import type { JsonObject } from "../json.ts";

/** Architectures whose Hugging Face weights are fused themselves. */
const FUSED_MODELS = /^phi3|^phi4/;

/**
 * onnxruntime-genai packs q, k, v (and gate, up) into one product; Hugging Face's names hold them apart.
 * Rows are split by the config's head counts.
 */
export function splitFused(
  tensors: ReadonlyMap<string, Tensor>,
  config: JsonObject,
  file: string,
): Map<string, Tensor> {
  const result = new Map<string, Tensor>();
  const keep = FUSED_MODELS.test(String(config.model_type));
  for (const [name, tensor] of tensors) {
    const match = /^(.*\.)(qkv_proj|gate_up_proj)(\.weight|\.bias)$/.exec(name);
    if (keep || match === null) {
      result.set(name, tensor);
      continue;
    }
    const parts = match[2] === "qkv_proj" ? attentionRows(config) : gateRows(tensor);
    const total = parts.reduce((sum, [, rows]) => sum + rows, 0);
    if (total !== tensor.shape[0]) {
      throw new CheckpointError(
        file,
        `${name} has ${tensor.shape[0]} rows, config.json's heads make ${total}`,
      );
    }
    let start = 0;
    for (const [part, rows] of parts) {
      const partName = `${match[1]}${part}${match[3]}`;
      result.set(partName, rowsOf(tensor, partName, start, start + rows));
      start += rows;
    }
  }
  return result;
}

function attentionRows(config: JsonObject): [string, number][] {
  const heads = Number(config.num_attention_heads);
  const keyValueHeads = Number(config.num_key_value_heads ?? heads);
  const headSize = Number(config.head_dim ?? Number(config.hidden_size) / heads);
  return [
    ["q_proj", heads * headSize],
    ["k_proj", keyValueHeads * headSize],
    ["v_proj", keyValueHeads * headSize],
  ];
}

function gateRows(tensor: Tensor): [string, number][] {
  return [
    ["gate_proj", tensor.shape[0] / 2],
    ["up_proj", tensor.shape[0] / 2],
  ];
}

function rowsOf(tensor: Tensor, name: string, start: number, end: number): Tensor {
  const [rows, ...rest] = tensor.shape;
  return {
    name,
    shape: [end - start, ...rest],
    encoding: tensor.encoding,
    byteLength: Math.round((tensor.byteLength * (end - start)) / rows),
    readRows: (from, to, target) => tensor.readRows(start + from, start + to, target),
  };
}
