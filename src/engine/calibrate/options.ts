import type { ChannelShares } from "../../compensation/settings.ts";
import type { BosRule } from "../../text/bos.ts";
import type { Sequences } from "../sequences.ts";

/** How a quantization is calibrated: the paper's data-aware mode. */
export interface CalibrateOptions {
  /**
   * Texts like those the model will see, or token sequences as they are. Default: text that the float model makes up
   * itself, from BOS at temperature 1.
   */
  readonly texts?: readonly string[];
  readonly ids?: Sequences;
  /** Tokens taken from the texts. Default 131072, and 8192 of the model's own. */
  readonly tokens?: number;
  /** Tokens of a sequence. Default 1024, of the model's own text 256, or the model's context where it is shorter. */
  readonly sequenceLength?: number;
  /** Starts every sequence of texts with the beginning-of-sequence token; default as the tokenizer's config says. */
  readonly bos?: BosRule;
  /**
   * Shows each layer the inputs that the quantized layers before it give. Default true, and false for a model that will be
   * compensated: without their residual they do not give what the next ones will see.
   */
  readonly sequential?: boolean;
  /** Added to the Hessians' diagonals, as a share of their means. Default .03. */
  readonly damping?: number;
  /** Round the input columns of most energy first. Default true. */
  readonly activationOrder?: boolean;
  /** Fit row scales to the codes by least squares in the Hessian's metric. Default true. */
  readonly refit?: boolean;
  /**
   * Tokens whose gradients say which errors matter, see tokenWeights.ts; 0 counts every input alike. Default 8192, and 0 for a
   * model that will be compensated.
   */
  readonly gradientTokens?: number;
  /** Rounds for a model that will be compensated. */
  readonly compensation?: CompensatedCalibration;
}

/** Hessians of what compensation leaves to the weights: (1 - blend) H of inputs without their largest channels + blend H. */
export interface CompensatedCalibration {
  /** Input channels that will be compensated. */
  readonly channels: ChannelShares;
  /** At 0 the channels always compensated would be rounded anyhow. */
  readonly blend: number;
}

export const DEFAULT_CALIBRATION_TOKENS = 131_072;
export const DEFAULT_GRADIENT_TOKENS = 8192;
export const DEFAULT_SEQUENCE_LENGTH = 1024;
export const DEFAULT_OWN_TOKENS = 8192;
export const DEFAULT_OWN_LENGTH = 256;
