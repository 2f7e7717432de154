import type { Tensor } from "../../checkpoint/checkpoint.ts";
import { fromFloat32 } from "../../checkpoint/dtype.ts";
import type { StoredScheme } from "../../checkpoint/quantization.ts";
import { rowLayout } from "../../checkpoint/shape.ts";
import type { QuantizedRows } from "./job.ts";
import { pipeline } from "./pipeline.ts";
import type { TensorPlan } from "./plan.ts";
import type { Pool } from "./pool.node.ts";
import type { TensorStore } from "./store.node.ts";

/** Weights of one job: a fraction of a second of trellis search, and small beside any model. */
const JOB_VALUES = 2 ** 18;
/** Weights copied at once. */
const COPY_VALUES = 2 ** 21;
/** Rows are cut at multiples of this, which every quantizer's blocks divide. */
const ROW_UNIT = 16;

interface Part {
  readonly tensor: Tensor;
  readonly stored: StoredScheme | undefined;
  readonly row: number;
  readonly end: number;
}

/** Data-free mode: rounds the tensors that the plan names and copies the others as float32. */
export async function quantizeTensors(
  tensors: readonly Tensor[],
  plan: TensorPlan,
  store: TensorStore,
  pool: Pool,
  signal?: AbortSignal,
): Promise<void> {
  async function* parts(): AsyncGenerator<Part> {
    for (const tensor of tensors) {
      if (await store.resumed(tensor)) continue;
      const { rows, rowSize } = rowLayout(tensor.shape);
      const stored = plan.get(tensor.name);
      const values = stored ? JOB_VALUES : COPY_VALUES;
      const step = Math.max(1, Math.floor(values / Math.max(1, rowSize * ROW_UNIT))) * ROW_UNIT;
      for (let row = 0; row < rows; row += step) {
        yield { tensor, stored, row, end: Math.min(row + step, rows) };
      }
    }
  }
  const round = async ({ tensor, stored, row, end }: Part): Promise<QuantizedRows | Uint8Array> => {
    const weights = await tensor.readRows(row, end);
    if (!stored) return fromFloat32("F32", weights);
    const columns = stored.shape[1];
    return pool.run({ kind: "round", weights, rows: end - row, columns, stored });
  };
  for await (const [{ tensor, row }, part] of pipeline(parts(), 2 * pool.threads, round)) {
    if (part instanceof Uint8Array) await store.copy(tensor, row, part);
    else await store.store(tensor.name, row, part);
    signal?.throwIfAborted();
  }
}
