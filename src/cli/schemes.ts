import { quantizerFor } from "../quantizers/registry.ts";
import { parseScheme, type Scheme } from "../quantizers/scheme.ts";

/** The quantizers of a list such as `tcq-s-3,nuq-4`. Throws a UsageError or UnsupportedError for a name of none. */
export function schemesNamed(list: string): Scheme[] {
  const schemes = list.split(",").map((name) => parseScheme(name.trim()));
  for (const scheme of schemes) quantizerFor(scheme);
  return schemes;
}
