import type { Backend } from "../../src/backends/backend.ts";
import type { LinearHandle } from "../../src/backends/operation.ts";
import { type Slot, slotPart } from "../../src/backends/slot.ts";
import type { OperationCase } from "../../src/ops/operationCase.ts";

/** Runs a case and returns what it wrote, by buffer. With `alone`, one program per token. */
export async function runCase(
  backend: Backend,
  operationCase: OperationCase,
  alone = false,
): Promise<Record<string, Float32Array>> {
  const { buffers, weights = {}, residual: source } = operationCase.inputs();
  const slots: Record<string, Slot> = {};
  for (const [name, { data }] of Object.entries(buffers)) {
    slots[name] = backend.allocate(data.byteLength);
    backend.upload(slots[name], data);
  }
  const handles: Record<string, LinearHandle> = {};
  for (const [name, weight] of Object.entries(weights)) handles[name] = await backend.loadLinear(weight);
  const residual = source && (await backend.loadResidual(source));

  const token = (t: number) =>
    Object.fromEntries(
      Object.entries(slots).map(([name, slot]) => {
        const { perToken } = buffers[name];
        return [name, perToken ? slotPart(slot, t * perToken * 4, perToken * 4) : slot];
      }),
    );
  const steps = alone
    ? Array.from({ length: operationCase.tokens }, (_, t) =>
        operationCase.operation(token(t), handles, 1, residual),
      )
    : [operationCase.operation(slots, handles, operationCase.tokens, residual)];
  for (const step of steps) {
    const program = backend.record([step]);
    await backend.run(program);
    program.free();
  }

  const results: Record<string, Float32Array> = {};
  for (const name of operationCase.results) {
    results[name] = await backend.readFloats(slots[name], buffers[name].data.length);
  }
  for (const slot of Object.values(slots)) backend.free(slot);
  for (const handle of Object.values(handles)) backend.freeLinear(handle);
  if (residual) backend.freeResidual(residual);
  return results;
}
