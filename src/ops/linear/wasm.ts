import type { Linear } from "../../backends/operation.ts";
import type { LoweringContext, Lowerings } from "../../backends/wasm/backend.ts";
import type { Instruction } from "../../backends/wasm/instruction.ts";
import { ADD_BIAS, ADD_HALVES } from "../../backends/wasm/opcodes.ts";
import { lowerCompensation } from "../compensate/wasm.ts";
import { byteRows, type IntegerPrecision } from "./activations.ts";
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
  const strategies = new Map(
    weights.map((weight) => [weight, chooseStrategy(weight, activations, rows, policy, context.device.simd)]),
  );
  const integer = (weight: PackedLinear) => strategies.get(weight)!.integers;
  const inputs = new Map<string, PreparedInput>();
  for (const { rotation } of weights) {
    const key = rotationKey(rotation);
    if (inputs.has(key)) continue;
    const reader = weights.find((weight) => rotationKey(weight.rotation) === key && integer(weight));
    const integers = reader && { ...reader, precision: activations as IntegerPrecision };
    inputs.set(key, prepareInput(op.input.place, rows, rotation, integers, inputs.size, context));
  }
  const sums: Instruction[] = [];
  const multiplied = weights.map((weight, i): Instruction => {
    const input = inputs.get(rotationKey(weight.rotation))!;
    const strategy = strategies.get(weight)!;
    const out = op.outputs[i].place;
    const halves = strategy.integers ? byteRows(activations) : 1;
    if (halves === 1) return strategy.lower(weight, input, out, rows, context);
    const both = context.scratch.shared(`halves ${i}`, halves * rows * weight.rows * 4);
    sums.push({ code: ADD_HALVES, args: [both, out, rows, weight.rows] });
    return strategy.lower(weight, input, both, halves * rows, context);
  });
  // Only the last one of the group has to be waited for.
  const products = [...multiplied, ...sums].map((product, i, { length }) => {
    return { ...product, independent: i < length - 1 };
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
