/**
 * The ways to stretch a rope over longer contexts. Each step is rounded to float32 where
 * transformers (5.23, modeling_rope_utils.py) computes in float32, and left in double where it
 * computes in Python.
 *
 * @module
 */
import type { ModelConfig } from "./config.ts";
import { periods, plainInverseFrequencies, type RopeSpec } from "./rope.ts";

const { fround } = Math;

/** What a rope is made from. */
export interface RopeSetting {
  /** `rope_parameters` or `rope_scaling`. */
  readonly parameters: ModelConfig;
  readonly theta: number;
  /** Elements of a head that turn. */
  readonly turning: number;
  /** `max_position_embeddings` */
  readonly contextLength: number;
}

type Scaled = Omit<RopeSpec, "rotated">;

/** Every rope type by its name in a config. */
export const ropeTypes: Readonly<Record<string, (setting: RopeSetting) => Scaled>> = {
  default: ({ theta, turning }) => fixed(plainInverseFrequencies(theta, turning)),
  linear,
  dynamic,
  llama3,
  yarn,
  longrope,
  gguf_factors: ggufFactors,
};

function fixed(frequencies: Float32Array, amplitude = 1): Scaled {
  return { amplitude, inverseFrequencies: () => frequencies };
}

/** Position interpolation: all frequencies divided (Chen et al., 2023, arXiv 2306.15595). */
function linear({ parameters, theta, turning }: RopeSetting): Scaled {
  const factor = fround(parameters.positive("factor"));
  return fixed(plainInverseFrequencies(theta, turning).map((frequency) => frequency / factor));
}

/** The base grows with the length past the context (dynamic NTK scaling). */
function dynamic({ parameters, theta, turning, contextLength }: RopeSetting): Scaled {
  const factor = parameters.positive("factor");
  if (turning <= 2)
    throw parameters.error("rope_type", `is "dynamic", for heads that turn ${turning} elements`);
  const power = fround(turning / (turning - 2));
  return {
    amplitude: 1,
    reach: reachOf(contextLength, factor),
    inverseFrequencies: (length) => {
      if (length <= contextLength) return plainInverseFrequencies(theta, turning);
      const stretch = fround(fround(fround(fround(factor) * length) / contextLength) - (factor - 1));
      return plainInverseFrequencies(theta * fround(stretch ** power), turning);
    },
  };
}

/** Long wavelengths are stretched, short ones kept, those between blended (Llama 3.1). */
function llama3({ parameters, theta, turning, contextLength }: RopeSetting): Scaled {
  const factor = fround(parameters.positive("factor"));
  const low = parameters.positive("low_freq_factor");
  const high = parameters.positive("high_freq_factor");
  const original = originalLength(parameters, contextLength);
  const scaled = plainInverseFrequencies(theta, turning).map((frequency) => {
    const wavelength = fround(fround(1 / frequency) * fround(2 * Math.PI));
    if (wavelength < fround(original / high)) return frequency;
    if (wavelength > fround(original / low)) return frequency / factor;
    const turns = fround(fround(1 / wavelength) * original);
    const smooth = fround(fround(turns - fround(low)) / fround(high - low));
    const stretched = fround(fround(fround(1 - smooth) * frequency) / factor);
    return stretched + fround(smooth * frequency);
  });
  return fixed(scaled);
}

/** YaRN: interpolated and plain frequencies blended by dimension (Peng et al., 2023, arXiv 2309.00071). */
function yarn({ parameters, theta, turning, contextLength }: RopeSetting): Scaled {
  const original = originalLength(parameters, contextLength);
  const factor = parameters.has("factor") ? parameters.positive("factor") : contextLength / original;
  const [low, high] = correctionRange(parameters, theta, turning, original);
  const width = fround(low === high ? 0.001 : high - low);
  const frequencies = periods(theta, turning).map((period, i) => {
    const ramp = Math.min(1, Math.max(0, fround(fround(i - fround(low)) / width)));
    const kept = fround(1 - ramp);
    const interpolated = fround(1 / fround(fround(factor) * period));
    return fround(interpolated * fround(1 - kept)) + fround(fround(1 / period) * kept);
  });
  return { ...fixed(frequencies, yarnAmplitude(parameters, factor)), reach: reachOf(original, factor) };
}

/** Dimensions between which YaRN blends: those that turn `beta_fast` and `beta_slow` times over the original context. */
function correctionRange(
  parameters: ModelConfig,
  theta: number,
  turning: number,
  original: number,
): [number, number] {
  const dimension = (turns: number) =>
    (turning * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const low = dimension(parameters.number("beta_fast", 32) || 32);
  const high = dimension(parameters.number("beta_slow", 1) || 1);
  const whole = parameters.flag("truncate", true);
  return [Math.max(whole ? Math.floor(low) : low, 0), Math.min(whole ? Math.ceil(high) : high, turning - 1)];
}

function yarnAmplitude(parameters: ModelConfig, factor: number): number {
  if (parameters.has("attention_factor")) return parameters.number("attention_factor");
  const [scale, scaleAll] = [parameters.number("mscale", 0), parameters.number("mscale_all_dim", 0)];
  const magnitude = (by: number) => (factor <= 1 ? 1 : 0.1 * by * Math.log(factor) + 1);
  return scale && scaleAll ? magnitude(scale) / magnitude(scaleAll) : magnitude(1);
}

/**
 * LongRoPE: periods multiplied by `short_factor` up to the original context and by `long_factor` beyond
 * (Ding et al., 2024, arXiv 2402.13753).
 */
function longrope({ parameters, theta, turning, contextLength }: RopeSetting): Scaled {
  const original = originalLength(parameters, contextLength);
  const factor = parameters.has("factor") ? parameters.positive("factor") : contextLength / original;
  const stretch = (key: string) => {
    const factors = perFrequency(parameters, key, turning);
    return periods(theta, turning).map((period, i) => 1 / fround(fround(factors[i]) * period));
  };
  const [short, long] = [stretch("short_factor"), stretch("long_factor")];
  const amplitude = parameters.has("attention_factor")
    ? parameters.number("attention_factor")
    : factor <= 1
      ? 1
      : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  return { amplitude, border: original, inverseFrequencies: (length) => (length > original ? long : short) };
}

/** Frequencies divided one by one, as GGUF files store them (`rope_freqs.weight`). */
function ggufFactors({ parameters, theta, turning }: RopeSetting): Scaled {
  const factors = perFrequency(parameters, "factors", turning);
  return fixed(plainInverseFrequencies(theta, turning).map((frequency, i) => frequency / factors[i]));
}

function perFrequency(parameters: ModelConfig, key: string, turning: number): number[] {
  const factors = parameters.numbers(key);
  const expected = Math.ceil(turning / 2);
  if (factors.length !== expected)
    throw parameters.error(key, `has ${factors.length} entries, expected ${expected}`);
  if (!factors.every((factor) => factor > 0)) throw parameters.error(key, "has entries that are not above 0");
  return factors;
}

function reachOf(original: number, factor: number): number {
  return Math.min(Math.floor(original * factor), 2 ** 24);
}

function originalLength(parameters: ModelConfig, contextLength: number): number {
  return parameters.size("original_max_position_embeddings", contextLength, 2 ** 31 - 1);
}
