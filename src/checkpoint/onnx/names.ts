/**
 * Hugging Face names from the scope names that exporters give to nodes:
 * `/model/layers.0/self_attn/q_proj/MatMul_quant` computes with
 * `model.layers.0.self_attn.q_proj`. onnxruntime-genai's builder has its own few words.
 *
 * @module
 */

/** The module a node belongs to; undefined when its name carries no scope. */
export function moduleOf(nodeName: string): string | undefined {
  const scopes = nodeName.split("/").filter((part) => part !== "");
  return scopes.length < 2 ? undefined : canonical(scopes.slice(0, -1).join("."));
}

/** The module of an initializer that kept its parameter's name, whatever quantizers appended. */
export function moduleOfInitializer(name: string): string | undefined {
  const match = /^((?:model|lm_head)\b.*?)(?:\.(?:MatMul|Add))?\.(?:weight|bias|qweight)(?:_\w*)?$/.exec(
    name,
  );
  return match === null ? undefined : canonical(match[1]);
}

function canonical(module: string): string | undefined {
  // Tables of rotary angles are computed from the config, never loaded.
  if (/(^|\.)rotary_emb/.test(module)) return undefined;
  return module
    .replace(/^(model\.layers\.\d+)\.attn\b/, "$1.self_attn")
    .replace(/^model\.layers\.\d+\.final_norm_layernorm$/, "model.norm")
    .replace(/\.layernorm$/, "");
}

export function isNorm(module: string): boolean {
  return /norm[^.]*$/.test(module);
}

export function isEmbedding(module: string): boolean {
  return /embed[^.]*$/.test(module);
}
