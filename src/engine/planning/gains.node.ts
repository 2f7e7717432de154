/**
 * What calibration will leave of each layer's loss.
 *
 * @module
 */
import { availableParallelism } from "node:os";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { openWasm } from "../../ops/wasm.ts";
import { LayerPass } from "../calibrate/layerPass.ts";
import { createPool } from "../quantize/pool.node.ts";
import { plannableModel } from "./layers.ts";

export interface GainsRun {
  /** Token sequences like those that the quantization will be calibrated on. */
  readonly sequences: readonly (readonly number[])[];
  /** Default all cores. */
  readonly threads?: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** The most common: that of trellis tiles. Smaller blocks gain a little more. */
const BLOCK_COLUMNS = 16;
/** As quantizing does unless told otherwise. */
const FACTOR = { damping: 0.03, activationOrder: true };

/**
 * By weight tensor of the layers: the share of the loss at equal distortion that is left when rounding errors are fed
 * back to what is still to be rounded (block LDLQ). With H = L D L^T the error of a quantizer of distortion e is
 * e trace D instead of e trace H, so the share is trace D / trace H, that of the layer's rotated inputs.
 */
export async function calibrationGains(
  checkpoint: Checkpoint,
  { sequences, threads = availableParallelism(), onProgress, signal }: GainsRun,
): Promise<Map<string, number>> {
  const { decoder } = plannableModel(checkpoint);
  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  const pool = createPool(threads);
  const gains = new Map<string, number>();
  try {
    const pass = new LayerPass(decoder, checkpoint, backend, sequences);
    const hidden = await pass.embed(signal);
    for (let index = 0; index < decoder.layers.length; index++) {
      onProgress?.(index, decoder.layers.length);
      const layer = await pass.load(index);
      const grams = await pass.observe(layer, hidden, index < decoder.layers.length - 1, signal);
      pass.free(layer);
      await Promise.all(
        grams.map(async ({ sums, columns, weights }) => {
          const job = {
            kind: "prepare",
            sums,
            columns,
            rotation: 0,
            blockColumns: BLOCK_COLUMNS,
            ...FACTOR,
          } as const;
          const { factor } = await pool.run(job);
          for (const name of weights) gains.set(name, factor.gain);
        }),
      );
    }
    return gains;
  } finally {
    await pool.close();
    backend.dispose();
  }
}
