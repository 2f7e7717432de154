import { fusedName } from "../checkpoint/quantization.ts";
import type { DecoderSpec, LinearSpec } from "../models/decoder.ts";
import { type ResidualBits, residualRowBytes } from "../quantizers/residual.ts";

/** Linear layers that share an input, and so the choice of its channels. */
export const LAYER_KINDS = ["qkv", "o", "gateUp", "down"] as const;
export type LayerKind = (typeof LAYER_KINDS)[number];

/** The layers of one input whose weights are quantized: their residual rows lie side by side. */
export interface ResidualGroup {
  /** Names its tensors in the residual file: `model.layers.0.self_attn.q_proj+k_proj+v_proj`. */
  readonly name: string;
  readonly kind: LayerKind;
  /** Input channels. */
  readonly columns: number;
  readonly members: readonly LinearSpec[];
}

/** The groups of a decoder in the order of use. Weights that are not quantized leave no residual. */
export function residualGroups(spec: DecoderSpec, isQuantized: (weight: string) => boolean): ResidualGroup[] {
  return spec.layers.flatMap(({ attention, mlp }) => {
    const byKind: Record<LayerKind, readonly LinearSpec[]> = {
      qkv: [attention.q, attention.k, attention.v],
      o: [attention.o],
      gateUp: [mlp.gate, mlp.up],
      down: [mlp.down],
    };
    return LAYER_KINDS.flatMap((kind): ResidualGroup[] => {
      const members = byKind[kind].filter(({ weight }) => isQuantized(weight));
      if (members.length === 0) return [];
      const name = fusedName([...new Set(members.map(({ weight }) => weight))]).replace(/\.weight$/, "");
      return [{ name, kind, columns: members[0].columns, members }];
    });
  });
}

/** Where each member's part of a channel's row begins, and what a whole row takes, in bytes. */
export function rowLayoutOf(
  { members }: Pick<ResidualGroup, "members">,
  bits: ResidualBits,
): { readonly offsets: readonly number[]; readonly stride: number } {
  let stride = 0;
  const offsets = members.map(({ rows }) => {
    const offset = stride;
    stride += residualRowBytes(rows, bits);
    return offset;
  });
  return { offsets, stride };
}

/** Names of a group's two tensors in the residual file. */
export function residualNames(group: string): { readonly codes: string; readonly scales: string } {
  return { codes: `${group}.residual`, scales: `${group}.residual_scales` };
}
