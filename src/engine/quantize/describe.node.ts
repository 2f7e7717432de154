/**
 * What a quantization was asked and did, in words: for its journal, and for config.json.
 *
 * @module
 */
import type { Checkpoint, Tensor } from "../../checkpoint/checkpoint.ts";
import {
  FORMAT_VERSION,
  QUANT_METHOD,
  type QuantizationConfig,
  RESIDUAL_FILE,
} from "../../checkpoint/quantization.ts";
import type { CalibrationRequest } from "../calibrate/request.ts";
import { type TuneResult, tuneSettings } from "../tuning/options.ts";
import type { TuneRequest } from "../tuning/sequences.ts";
import { digest } from "./journal.node.ts";
import { storedWeights, type TensorPlan } from "./plan.ts";
import type { QuantizeRun } from "./run.ts";

/** All that the result depends on, in words: a resumed run must have been asked the same. */
export function requestOf(
  checkpoint: Checkpoint,
  tensors: readonly Tensor[],
  plan: TensorPlan,
  { calibrate, tune }: QuantizeRun,
  calibration: CalibrationRequest | undefined,
  tuning: TuneRequest | undefined,
): string {
  const { texts: _, ids: __, ...options } = calibrate ?? {};
  return JSON.stringify({
    version: FORMAT_VERSION,
    source: checkpoint.source,
    tensors: tensors.map(({ name, shape, encoding, byteLength }) => [name, shape, encoding, byteLength]),
    plan: [...plan],
    balance: checkpoint.balance?.digest,
    calibrate: calibration && {
      ...options,
      ...calibration,
      given: digest(JSON.stringify(calibration.given ?? null)),
    },
    tune: tuning && {
      ...tuning,
      ...tuneSettings(tune!),
      given: digest(JSON.stringify(tuning.given ?? null)),
    },
  });
}

/** The checkpoint's config with what the quantized weights are. */
export function configOf(
  checkpoint: Checkpoint,
  plan: TensorPlan,
  { residual: bits, channels, tune }: QuantizeRun,
  tuning?: TuneResult,
  checksum?: string,
): Record<string, unknown> {
  const { balance } = checkpoint;
  const quantization: QuantizationConfig = {
    quant_method: QUANT_METHOD,
    version: FORMAT_VERSION,
    source: checkpoint.source,
    tensors: Object.fromEntries(storedWeights(plan)),
    ...(balance && { balance: { exponent: balance.exponent, tokens: balance.tokens } }),
    ...(bits && {
      residual: { file: RESIDUAL_FILE, bits, ...(checksum && { checksum }), ...(channels && { channels }) },
    }),
    ...(tuning && { tuning: { ...tuneSettings(tune!), ...tuning } }),
  };
  return { ...checkpoint.config, quantization_config: quantization };
}
