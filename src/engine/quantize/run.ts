/**
 * What a quantization is asked, what it tells on the way, and what it gives.
 *
 * @module
 */
import type { ChannelShares } from "../../compensation/settings.ts";
import type { ResidualBits } from "../../quantizers/residual.ts";
import type { CalibrateOptions } from "../calibrate/options.ts";
import type { TuneOptions, TuneResult } from "../tuning/options.ts";
import type { QuantizeOptions } from "./plan.ts";

export interface QuantizeProgress {
  /**
   * `round`: weights become codes; `gradients`: calibration tokens tell which errors matter; `observe` and `advance`:
   * they go through a layer; `residual`: what rounding took is stored; `sample`: the float model makes up text to
   * calibrate or tune on; `tune`: scales and norms are tuned; before all that `balance`: the float model makes up text, and
   * shows how large its inputs are.
   */
  readonly phase: "balance" | "round" | "gradients" | "observe" | "advance" | "residual" | "sample" | "tune";
  /** The tensor or layer at work, how much of gradients or text is done, or the step. */
  readonly tensor: string;
  /** Weights done and in all; shares of the phase when balancing, tuning and sampling for it. */
  readonly done: number;
  readonly total: number;
  /** The pace since this run began to compute, undefined at its start and when sampling. */
  readonly weightsPerSecond: number | undefined;
  /** What that pace promises; before the first weight, once, for `tune` what tuning will take. */
  readonly secondsLeft: number | undefined;
}

export interface QuantizeRun extends QuantizeOptions {
  /** Data-aware mode; data-free when absent. */
  readonly calibrate?: CalibrateOptions;
  /**
   * Scales channels before rounding, see `balanceCheckpoint`. Default: when data-free or calibrated for compensation,
   * unless the float model is too large to be run. A checkpoint that is balanced already is taken as it is.
   */
  readonly balance?: boolean;
  /** Tunes row scales and norm weights when all weights are quantized. Default: not. */
  readonly tune?: TuneOptions;
  /** Stores the residual with this many bits a weight, for dynamic error compensation. Default: none. */
  readonly residual?: ResidualBits;
  /** Channels that the model was planned with: it is run with them unless told otherwise. */
  readonly channels?: ChannelShares;
  /** Threads that compute; the result does not depend on it. Default all cores. */
  readonly threads?: number;
  /** Continue what an unfinished run with the same options left. Default true. */
  readonly resume?: boolean;
  readonly onProgress?: (progress: QuantizeProgress) => void;
  /** Told what is left out that usually is done, and why. */
  readonly onNotice?: (notice: string) => void;
  readonly signal?: AbortSignal;
}

export interface QuantizeResult {
  readonly folder: string;
  /** Quantized weights, and all. */
  readonly quantizedWeights: number;
  readonly weights: number;
  /** Bits per weight over all tensors, scales included. */
  readonly bitsPerWeight: number;
  /** Over the linear layers alone, embedding and head left out. */
  readonly linearBitsPerWeight: number;
  /** Whether channels were scaled before. */
  readonly balanced: boolean;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Of the residual file, which is not part of `bytesAfter`. */
  readonly residualBytes?: number;
  /** What tuning brought, where it was asked for. */
  readonly tuning?: TuneResult;
  /** Of model.safetensors, or its shards, headers included. */
  readonly fileBytes: number;
  readonly seconds: number;
}
