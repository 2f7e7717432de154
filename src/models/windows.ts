import { UnsupportedError } from "../errors.ts";
import type { ModelConfig } from "./config.ts";

/** How far a layer sees: everything, or `sliding_window` positions. */
export type LayerType = "full_attention" | "sliding_attention";

/** `sliding_window` of the config, 0 where it is null or absent. A token sees itself and the window - 1 before it. */
export function slidingWindow(config: ModelConfig): number {
  return config.has("sliding_window") ? config.size("sliding_window", undefined, 2 ** 31 - 1) : 0;
}

/** `layer_types` of the config; where it has none, `isSliding` of each layer's index tells. */
export function layerTypes(
  config: ModelConfig,
  layers: number,
  isSliding: (index: number) => boolean,
): LayerType[] {
  if (!config.has("layer_types")) {
    return Array.from({ length: layers }, (_, i) => (isSliding(i) ? "sliding_attention" : "full_attention"));
  }
  const types = config.texts("layer_types");
  if (types.length !== layers)
    throw config.error("layer_types", `has ${types.length} entries for ${layers} layers`);
  return types.map((type) => {
    if (type === "full_attention" || type === "sliding_attention") return type;
    throw new UnsupportedError(
      `${config.source}: layer type ${JSON.stringify(type.slice(0, 40))} is not supported; ` +
        `supported: full_attention, sliding_attention`,
    );
  });
}
