/**
 * A decoder-only transformer as data: what an architecture's file makes of a Hugging Face config,
 * and all that the engine needs to run it. Tensors are named, never held.
 *
 * @module
 */
import type { RopeSpec } from "./rope.ts";

/** A linear layer's weight [rows, columns] in the checkpoint, or some rows of a fused one. */
export interface LinearSpec {
  /** Name of the weight tensor. */
  readonly weight: string;
  /** Name of the bias tensor. */
  readonly bias?: string;
  readonly rows: number;
  readonly columns: number;
  /** First row within a fused tensor, e.g. `k` in Phi-3's `qkv_proj`. Default 0. */
  readonly firstRow?: number;
}

/** A norm's weight tensor. */
export interface NormSpec {
  readonly weight: string;
  readonly size: number;
}

export interface AttentionSpec {
  readonly q: LinearSpec;
  readonly k: LinearSpec;
  readonly v: LinearSpec;
  readonly o: LinearSpec;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Multiplies the scores. */
  readonly scale: number;
  /** Sliding window: a token sees itself and the `window - 1` before it; 0 sees all. */
  readonly window: number;
  /** Soft cap of the scores; 0 for none. */
  readonly softcap: number;
  /** Which of the decoder's `ropes` turns queries and keys; undefined for none. */
  readonly rope: number | undefined;
  /** RMS norms of queries and keys before the rotation: one weight per head element, or over the whole row. */
  readonly qNorm?: NormSpec;
  readonly kNorm?: NormSpec;
}

export interface MlpSpec {
  readonly gate: LinearSpec;
  readonly up: LinearSpec;
  readonly down: LinearSpec;
  readonly activation: "silu" | "geluTanh";
}

/** Norms before a sublayer apply to its input, after it to its output before the residual sum. */
export interface LayerSpec {
  readonly attention: AttentionSpec;
  readonly mlp: MlpSpec;
  readonly norms: {
    readonly beforeAttention?: NormSpec;
    readonly afterAttention?: NormSpec;
    readonly beforeMlp?: NormSpec;
    readonly afterMlp?: NormSpec;
  };
}

export interface DecoderSpec {
  /** `model_type`, e.g. `llama`. */
  readonly architecture: string;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  /** Positions the model was made for. */
  readonly contextLength: number;
  readonly embedding: LinearSpec;
  /** Multiplies embeddings (Gemma's sqrt(hidden)). */
  readonly embeddingScale: number;
  readonly layers: readonly LayerSpec[];
  readonly ropes: readonly RopeSpec[];
  readonly finalNorm: NormSpec;
  /** The embedding again when tied. */
  readonly head: LinearSpec;
  /** Soft cap of the logits; 0 for none. */
  readonly logitSoftcap: number;
  readonly normEpsilon: number;
  /** Added to every norm weight (Gemma stores w - 1). */
  readonly normOffset: 0 | 1;
}
