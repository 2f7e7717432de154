import { CheckpointError, UnsupportedError } from "../../errors.ts";
import type { Settings } from "./settings.ts";

/** Frequency factors that the file stores as tensors. */
export interface RopeFactors {
  /** `rope_freqs.weight` */
  readonly all?: readonly number[];
  /** `rope_factors_long.weight`, `rope_factors_short.weight` */
  readonly long?: readonly number[];
  readonly short?: readonly number[];
}

/** The tensors that `RopeFactors` are read from. */
export const ROPE_FACTOR_TENSORS = {
  all: "rope_freqs.weight",
  long: "rope_factors_long.weight",
  short: "rope_factors_short.weight",
} as const;

/**
 * `rope_scaling` of config.json, undefined without scaling. Factors that Llama 3's rule explains become
 * `llama3`; others `{rope_type: "gguf_factors", factors}`, by which the inverse frequencies are to be divided.
 */
export function ropeScaling(
  settings: Settings,
  architecture: string,
  config: Record<string, unknown>,
  factors: RopeFactors,
): Record<string, unknown> | undefined {
  const key = (name: string) => `${architecture}.rope.scaling.${name}`;
  const factor = settings.number(key("factor"));
  const original = settings.integer(key("original_context_length"));
  const attention = settings.number(key("attn_factor"));
  if (factors.long !== undefined && factors.short !== undefined) {
    return {
      type: "longrope",
      rope_type: "longrope",
      long_factor: factors.long,
      short_factor: factors.short,
      original_max_position_embeddings: settings.required(original, key("original_context_length")),
      ...(attention === undefined ? {} : { attention_factor: attention }),
    };
  }
  if (factors.all !== undefined) {
    const dimensions = 2 * factors.all.length;
    return (
      llama3Scaling(factors.all, Number(config.rope_theta), dimensions) ?? {
        rope_type: "gguf_factors",
        factors: factors.all,
      }
    );
  }
  const kind = settings.string(key("type")) ?? (factor === undefined ? "none" : "linear");
  switch (kind) {
    case "none":
      return undefined;
    case "linear":
      return factor === undefined || factor === 1 ? undefined : { rope_type: "linear", factor };
    case "yarn": {
      const stretch = settings.required(factor, key("factor"));
      const fast = settings.number(key("yarn_beta_fast"));
      const slow = settings.number(key("yarn_beta_slow"));
      return {
        rope_type: "yarn",
        factor: stretch,
        original_max_position_embeddings: original ?? config.max_position_embeddings,
        ...(fast === undefined ? {} : { beta_fast: fast }),
        ...(slow === undefined ? {} : { beta_slow: slow }),
        // llama.cpp multiplies its own 1 + 0.1 ln(factor) by this; Hugging Face's replaces it.
        ...(attention === undefined ? {} : { attention_factor: attention * (1 + 0.1 * Math.log(stretch)) }),
      };
    }
    case "longrope":
      throw new CheckpointError(
        settings.file,
        `longrope without the tensors ${ROPE_FACTOR_TENSORS.long} and short`,
      );
    default:
      throw new UnsupportedError(
        `${settings.file}: rope scaling ${JSON.stringify(kind.slice(0, 40))}; none, linear, yarn and longrope are supported`,
      );
  }
}

/** Finds the settings of Llama 3's rule that give these factors: all published models use 1 and 4 for its bounds. */
function llama3Scaling(factors: readonly number[], theta: number, dimensions: number) {
  const factor = Math.max(...factors);
  const rounded = Math.round(factor);
  if (Math.abs(factor - rounded) > 1e-6 * rounded || rounded < 1) return undefined;
  for (let original = 16; original <= 2 ** 20; original *= 2) {
    const same = factors.every((value, i) => {
      const wavelength = 2 * Math.PI * theta ** ((2 * i) / dimensions);
      const smooth = Math.min(1, Math.max(0, (original / wavelength - 1) / 3));
      return Math.abs(value - 1 / ((1 - smooth) / rounded + smooth)) < 4e-6 * value;
    });
    if (same) {
      return {
        rope_type: "llama3",
        factor: rounded,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: original,
      };
    }
  }
  return undefined;
}
