import type { ResidualHandle } from "../backends/operation.ts";
import { InputProfiler } from "../compensation/profile.ts";
import { uploadStep } from "./buffers.ts";
import { forward } from "./forward.ts";
import type { Model } from "./model.ts";

/**
 * Learns what the inputs of the compensated layers are like, from a sequence of tokens. Overwrites the cache.
 *
 * @param observe sees every input too, [tokens, columns]
 */
export async function profileInputs(
  model: Model,
  ids: readonly number[],
  observe?: (residual: ResidualHandle, inputs: Float32Array) => void,
): Promise<void> {
  const { runner, backend } = model;
  const { forwardPlan, reading, chunk } = runner;
  const { residuals } = forwardPlan.weights;
  if (!residuals || !reading.compensation) return;
  const exact = { ...reading, compensation: { ...reading.compensation, select: "exact" } } as const;
  const profilers = new Map<ResidualHandle, InputProfiler>();
  for (let at = 0; at < ids.length; at += chunk) {
    const part = ids.slice(at, at + chunk);
    const positions = part.map((_, i) => at + i);
    uploadStep(model.spec, backend, forwardPlan.buffers, { ids: part, positions, length: ids.length });
    const operations = forward(forwardPlan, exact, part.length, "none", undefined);
    let start = 0;
    const runTo = async (end: number) => {
      const program = backend.record(operations.slice(start, end));
      await backend.run(program);
      program.free();
      start = end;
    };
    for (const [i, operation] of operations.entries()) {
      if (operation.op !== "linear" || !operation.compensation) continue;
      await runTo(i);
      const { residual } = operation.compensation;
      const profiler = profilers.get(residual) ?? new InputProfiler(residual.columns);
      const inputs = await backend.readFloats(operation.input, part.length * residual.columns);
      profiler.add(inputs);
      observe?.(residual, inputs);
      profilers.set(residual, profiler);
    }
    await runTo(operations.length);
  }
  for (const { group, handle } of residuals.groups) {
    const profiler = profilers.get(handle);
    if (profiler) residuals.learn(group, profiler.result());
  }
}
