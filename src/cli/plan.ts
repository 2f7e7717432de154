import { UsageError } from "../errors.ts";
import type { planFlags } from "./flags.ts";
import type { Invocation } from "./verb.ts";

/** `halftone plan`: which quantizer each layer gets, and which layers are fused. */
export async function plan(invocation: Invocation<typeof planFlags>): Promise<void> {
  const [name] = invocation.operands;
  if (name === undefined) {
    const { planProblem } = await import("./planProblem.ts");
    return planProblem(invocation);
  }
  if (invocation.flags.problem !== undefined) {
    throw new UsageError("--problem says it all; leave out MODEL, or the problem");
  }
  if (invocation.flags.frontier) {
    const { planFrontier } = await import("./planFrontier.ts");
    return planFrontier(name, invocation.flags);
  }
  if (invocation.flags.measure !== undefined) {
    throw new UsageError("--measure belongs to --frontier; to score a model of one plan, quantize it");
  }
  const { planModel } = await import("./planModel.ts");
  return planModel(name, invocation);
}
