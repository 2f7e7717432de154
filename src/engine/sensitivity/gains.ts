import type { Backend } from "../../backends/backend.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import type { DecoderSpec } from "../../models/decoder.ts";
import { type InputGram, LayerPass } from "../calibrate/layerPass.ts";
import { DEFAULT_GRADIENT_TOKENS } from "../calibrate/options.ts";
import { tokenWeights } from "../calibrate/tokenWeights.ts";
import type { Sequences } from "../sequences.ts";

export interface GainRun {
  readonly spec: DecoderSpec;
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly sequences: Sequences;
  /** trace D / trace H of the Hessian that these sums give, see `LdlqFactor`; may run on another thread. */
  readonly gainOf: (gram: InputGram) => Promise<number>;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * What calibration leaves of the loss of plain rounding, by weight tensor. Plain rounding errs by s^2 trace H on an
 * input with Hessian H = L D L^T, LDLQ by s^2 trace D (QuIP, arXiv:2307.13304, theorem 1): inputs whose channels
 * predict each other gain most. H weighs tokens as calibrated quantization does. Embedding and head are not calibrated.
 */
export async function calibrationGains(run: GainRun): Promise<Map<string, number>> {
  const { spec, checkpoint, backend, sequences, gainOf, onProgress, signal } = run;
  const parts = 2 * spec.layers.length;
  const weights = await tokenWeights({
    ...{ spec, checkpoint, backend, sequences, signal, gradientTokens: DEFAULT_GRADIENT_TOKENS },
    onProgress: (done, total) => onProgress?.((spec.layers.length * done) / total, parts),
  });
  const pass = new LayerPass(spec, checkpoint, backend, sequences);
  const gains: Promise<(readonly [string, number])[]>[] = [];
  try {
    const hidden = await pass.embed(signal);
    for (let index = 0; index < spec.layers.length; index++) {
      const layer = await pass.load(index);
      const grams = await pass.observe(layer, hidden, { advance: true, tokenWeights: weights, signal });
      pass.free(layer);
      const found = grams.map(async (gram) => {
        const gain = await gainOf(gram);
        return gram.weights.map((name) => [name, gain] as const);
      });
      gains.push(...found);
      // Factors are slower than layers: not more of their matrices than one layer has wait in memory.
      await Promise.all(found);
      onProgress?.(spec.layers.length + index + 1, parts);
    }
  } finally {
    pass.dispose();
  }
  return new Map((await Promise.all(gains)).flat());
}
