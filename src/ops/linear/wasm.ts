import type { Linear } from "../../backends/operation.ts";
import type { LoweringContext, Lowerings } from "../../backends/wasm/backend.ts";
import type { Instruction } from "../../backends/wasm/instruction.ts";
import { ADD_BIAS } from "../../backends/wasm/opcodes.ts";
import { lowerCompensation } from "../compensate/wasm.ts";
import { largestInteger } from "./activations.ts";
import { chooseStrategy } from "./dispatch.ts";
import { type PreparedInput, prepareInput } from "./input.ts";
import type { PackedLinear } from "./packed.ts";
import type { LinearPolicy } from "./policy.ts";
import { rotationKey } from "./rotate.ts";

/** Lowers linear operations, each product on the strategy that the policy, or the built-in one, has for its shape. */
export function linearLowering(policy?: LinearPolicy): Lowerings["linear"] {
  return (op, context) => lowerLinear(op, policy, context);
}

/** Rotates and quantizes the input once for all weights that want it so, then multiplies. */
const lowerLinear = (
  op: Linear,
  policy: LinearPolicy | undefined,
  context: LoweringContext,
): Instruction[] => {
  const weights = op.weights as readonly PackedLinear[];
  const { rows, activations } = op;
  const largest = activations === "float" ? undefined : largestInteger[activations];
  const strategies = new Map(
    weights.map((weight) => [weight, chooseStrategy(weight, activations, rows, policy)]),
  );
  const integer = (weight: PackedLinear) => strategies.get(weight)!.integers;
  const inputs = new Map<string, PreparedInput>();
  for (const { rotation } of weights) {
    const key = rotationKey(rotation);
    if (inputs.has(key)) continue;
    const reader = weights.find((weight) => rotationKey(weight.rotation) === key && integer(weight));
    const integers = reader && { ...reader, largest: largest! };
    inputs.set(key, prepareInput(op.input.place, rows, rotation, integers, inputs.size, context));
  }
  const products = weights.map((weight, i): Instruction => {
    const input = inputs.get(rotationKey(weight.rotation))!;
    const product = strategies.get(weight)!.lower(weight, input, op.outputs[i].place, rows, context);
    // Only the last product of the group has to be waited for.
    return { ...product, independent: i < weights.length - 1 };
  });
  const biases = op.biases.flatMap((bias, i): Instruction[] =>
    bias
      ? [
          {
            code: ADD_BIAS,
            args: [op.outputs[i].place, bias.place, rows, weights[i].rows],
            tokenRows: rows,
          },
        ]
      : [],
  );
  const steps = [...inputs.values()].flatMap((input) => input.steps);
  const { compensation } = op;
  if (!compensation) return [...steps, ...products, ...biases];
  const { select, fetch, add } = lowerCompensation({ ...op, compensation }, context);
  // One thread chooses while another prepares the input, and the products read nothing that either chose.
  const independent = steps.length > 0 || fetch.length === 0;
  const chosen = select.with(-1, { ...select.at(-1)!, independent });
  const reads = fetch.map((each) => ({ ...each, independent: true }));
  return [...chosen, ...steps, ...reads, ...products, ...biases, ...add];
};
