import { UnsupportedError } from "../errors.ts";
import { ModelConfig } from "./config.ts";
import type { RopeSpec } from "./rope.ts";
import { ropeTypes } from "./ropeScaling.ts";

type Parameters = Readonly<Record<string, unknown>>;

/**
 * The one rope of a config, in either style: `rope_theta` and `rope_scaling`, or transformers 5's
 * `rope_parameters`.
 *
 * @param aliases other names of rope types, by the name in the config
 */
export function ropeFromConfig(
  config: ModelConfig,
  headSize: number,
  aliases: Readonly<Record<string, string>> = {},
): RopeSpec {
  const scaling = config.object("rope_scaling")?.values ?? {};
  // As in transformers: of two, the older style decides.
  const parameters =
    Object.keys(scaling).length > 0 ? scaling : (config.object("rope_parameters")?.values ?? {});
  for (const type of ["full_attention", "sliding_attention"]) {
    if (parameters[type] !== undefined) {
      throw new UnsupportedError(
        `${config.source}: ropes by layer type ("rope_parameters.${type}") are supported for gemma3 only`,
      );
    }
  }
  const own = (key: string) => (config.has(key) ? { [key]: config.values[key] } : {});
  return ropeFromParameters(
    config,
    headSize,
    {
      ...own("rope_theta"),
      ...own("partial_rotary_factor"),
      ...parameters,
      // As in transformers: this one stands above the rope's own (Phi-3).
      ...own("original_max_position_embeddings"),
    },
    aliases,
  );
}

/** A rope from its parameters: `rope_type` (or `type`), `rope_theta`, `partial_rotary_factor`, and the type's own. */
export function ropeFromParameters(
  config: ModelConfig,
  headSize: number,
  values: Parameters,
  aliases: Readonly<Record<string, string>> = {},
): RopeSpec {
  const parameters = new ModelConfig(config.source, values);
  const name = parameters.text("rope_type", parameters.text("type", "default"));
  const type = Object.hasOwn(aliases, name) ? aliases[name] : name;
  if (!Object.hasOwn(ropeTypes, type)) {
    const known = Object.keys(ropeTypes).join(", ");
    throw new UnsupportedError(
      `${config.source}: rope type ${JSON.stringify(name.slice(0, 40))} is not supported; supported: ${known}`,
    );
  }
  const turning = Math.floor(headSize * parameters.positive("partial_rotary_factor", 1));
  const rotated = 2 * Math.ceil(turning / 2);
  if (turning < 1 || rotated > headSize) {
    throw parameters.error("partial_rotary_factor", `turns ${turning} of ${headSize} elements of a head`);
  }
  const setting = {
    parameters,
    theta: parameters.positive("rope_theta", 10000),
    turning,
    contextLength: config.size("max_position_embeddings"),
  };
  return { rotated, ...ropeTypes[type](setting) };
}
