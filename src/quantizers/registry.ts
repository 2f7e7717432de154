/**
 * From a scheme to its quantizer.
 *
 * @module
 */
import { UnsupportedError } from "../errors.ts";
import { nuqQuantizer } from "./nuq.ts";
import type { Quantizer } from "./quantizer.ts";
import type { Family, Scheme } from "./scheme.ts";
import { tcqQuantizer } from "./tcq/index.ts";
import { uniformQuantizer } from "./uniform.ts";
import { vqQuantizer } from "./vq.ts";

const makers: Partial<Readonly<Record<Family, (scheme: Scheme) => Quantizer>>> = {
  uniform: uniformQuantizer,
  nuq: nuqQuantizer,
  vq: vqQuantizer,
  tcq: (scheme) => tcqQuantizer(scheme),
  "tcq-s": (scheme) => tcqQuantizer(scheme),
};

/** The quantizer of a scheme. Throws an UnsupportedError for a float scheme, which has none. */
export function quantizerFor(scheme: Scheme): Quantizer {
  const make = makers[scheme.family];
  if (!make) throw new UnsupportedError(`${scheme.name} does not quantize; name a scheme such as nuq-4`);
  return make(scheme);
}
