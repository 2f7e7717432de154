import type { ActivationPrecision } from "../../backends/operation.ts";
import type { SimdLevel } from "../../backends/wasm/module.ts";
import { UnsupportedError } from "../../errors.ts";
import { parseScheme } from "../../quantizers/scheme.ts";
import { byteRows } from "./activations.ts";
import type { PackedLinear } from "./packed.ts";
import { fieldLayouts } from "./plan.ts";
import type { LinearPolicy, StrategyName } from "./policy.ts";
import { type Strategy, strategies } from "./strategies.ts";

/**
 * Fewest tokens for which decoding once to memory beats decoding each pair in registers, until a policy knows better:
 * three bits take the most instructions to decode, and without relaxed SIMD registers are short.
 */
function decodedFrom(scheme: string, simd: SimdLevel): number {
  if (simd === "plain") return 2;
  return parseScheme(scheme).bits === 3 ? 5 : 8;
}

/**
 * The strategy of a product: what the policy says if it takes these weights, else the first of the built-in order that
 * does. Throws an UnsupportedError that names each one tried and why it declined.
 */
export function chooseStrategy(
  weight: PackedLinear,
  activations: ActivationPrecision,
  m: number,
  policy?: LinearPolicy,
  simd: SimdLevel = "relaxed",
): Strategy {
  const { rows: n, columns: k, scheme } = weight;
  // 16 bits are two rows of 8, and multiplied as such.
  const asked = activations === "int16" ? "int8" : activations;
  const byteM = m * byteRows(activations);
  const wanted = policy?.({ n, k, scheme, activations: asked, m: byteM });
  const declined: string[] = [];
  for (const name of new Set([...(wanted ? [wanted] : []), ...builtInOrder(scheme, byteM, simd)])) {
    const strategy = strategies.find((each) => each.name === name)!;
    const reason =
      strategy.integers && activations === "float" ? "it reads integers" : strategy.declines(weight);
    if (reason === undefined) return strategy;
    declined.push(`${name}: ${reason}`);
  }
  throw new UnsupportedError(
    `no strategy multiplies [${m}, ${k}] by ${scheme} weights [${n}, ${k}] (${declined.join("; ")}); quantize the model with another scheme`,
  );
}

function builtInOrder(scheme: string, m: number, simd: SimdLevel): readonly StrategyName[] {
  const padding = ["padding", "padding-decoded"] as const;
  const direct = m < decodedFrom(scheme, simd);
  return ["table", ...(direct ? padding : padding.toReversed()), "split", "bitwise", "float"];
}

/**
 * Whether weights go into bit planes, the layout of `table` and `bitwise`: where the policy wants one of them for a
 * single token or, if it does not know the shape, where the int8 dot product has to be built of eight instructions.
 */
export function wantsPlanes(
  { rows: n, columns: k, scheme }: Pick<PackedLinear, "rows" | "columns" | "scheme">,
  simd: SimdLevel,
  policy?: LinearPolicy,
): boolean {
  if (!fieldLayouts(parseScheme(scheme)).includes("planes")) return false;
  const wanted = policy?.({ n, k, scheme, activations: "int8", m: 1 });
  return wanted === undefined ? simd === "plain" : wanted === "table" || wanted === "bitwise";
}
