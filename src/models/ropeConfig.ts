import { UnsupportedError } from "../errors.ts";
import type { ModelConfig } from "./config.ts";
import { plainInverseFrequencies, type RopeSpec } from "./rope.ts";

/** The rope of a config, in either style: `rope_theta` and `rope_scaling`, or transformers 5's `rope_parameters`. */
export function ropeFromConfig(config: ModelConfig, headSize: number): RopeSpec {
  const parameters = config.object("rope_parameters") ?? config.object("rope_scaling");
  const theta = parameters?.has("rope_theta")
    ? parameters.number("rope_theta")
    : config.number("rope_theta", 10000);
  const partial = config.number("partial_rotary_factor", 1);
  const rotated = Math.floor(headSize * partial);
  const kind = parameters?.text("rope_type", parameters.text("type", "default")) ?? "default";
  const plain = plainInverseFrequencies(theta, rotated);
  if (kind === "default") return { rotated, amplitude: 1, inverseFrequencies: () => plain };
  if (kind === "llama3") {
    const scaled = llama3Frequencies(plain, parameters!);
    return { rotated, amplitude: 1, inverseFrequencies: () => scaled };
  }
  throw new UnsupportedError(
    `${config.source}: rope scaling "${kind}" is not supported; supported: default, llama3`,
  );
}

/** Long wavelengths are stretched, short ones kept, those between blended (Llama 3.1). */
function llama3Frequencies(plain: Float32Array, parameters: ModelConfig): Float32Array {
  const factor = parameters.number("factor");
  const low = parameters.number("low_freq_factor");
  const high = parameters.number("high_freq_factor");
  const original = parameters.number("original_max_position_embeddings");
  return plain.map((frequency) => {
    const wavelength = (2 * Math.PI) / frequency;
    if (wavelength < original / high) return frequency;
    if (wavelength > original / low) return frequency / factor;
    const smooth = (original / wavelength - low) / (high - low);
    return ((1 - smooth) * frequency) / factor + smooth * frequency;
  });
}
