import type { LayerKind } from "../../compensation/groups.ts";
import type { DecoderSpec, LinearSpec, NormSpec } from "../../models/decoder.ts";

/** An input of linear layers whose channels can be scaled, since what makes it can be divided by the same. */
export interface ScalableInput {
  readonly kind: LayerKind;
  readonly columns: number;
  /** The layers that multiply it. */
  readonly readers: readonly LinearSpec[];
  /** What each channel of it is proportional to: a norm's weight, or a linear layer's output. */
  readonly source: { readonly norm: NormSpec } | { readonly linear: LinearSpec };
  /** Channels of the source. */
  readonly sourceSize: number;
  /** The source's channel that a channel comes from: query heads share those of their keys and values. */
  sourceChannel(channel: number): number;
}

/**
 * The inputs of a decoder that can be scaled, in the order of use. Where no norm is before a sublayer (OLMo 2) its input
 * is the residual stream, which is nobody's own.
 */
export function scalableInputs({ layers }: DecoderSpec): ScalableInput[] {
  return layers.flatMap(({ attention, mlp, norms: { beforeAttention, beforeMlp } }) => {
    const { q, k, v, o, heads, kvHeads, headSize } = attention;
    const { gate, up, down } = mlp;
    const keyValueHead = (channel: number) => Math.floor((channel * kvHeads) / (headSize * heads));
    const keyValueChannel = (channel: number) => keyValueHead(channel) * headSize + (channel % headSize);
    return [
      ...(beforeAttention ? [fromNorm("qkv", beforeAttention, [q, k, v])] : []),
      fromLinear("o", v, o, keyValueChannel),
      ...(beforeMlp ? [fromNorm("gateUp", beforeMlp, [gate, up])] : []),
      fromLinear("down", up, down, (channel) => channel),
    ];
  });
}

function fromNorm(kind: LayerKind, norm: NormSpec, readers: readonly LinearSpec[]): ScalableInput {
  const { size } = norm;
  return {
    ...{ kind, columns: size, readers, source: { norm }, sourceSize: size },
    sourceChannel: (channel) => channel,
  };
}

function fromLinear(
  kind: LayerKind,
  linear: LinearSpec,
  reader: LinearSpec,
  sourceChannel: (channel: number) => number,
): ScalableInput {
  const { columns } = reader;
  return {
    ...{ kind, columns, readers: [reader], source: { linear }, sourceSize: linear.rows },
    sourceChannel,
  };
}
