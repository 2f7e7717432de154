/**
 * Balancing: scales the input channels of a float model's linear layers against their weights, so that data-free
 * rounding of rotated weights loses less. See docs/palette.md, "Balancing".
 *
 * @module
 */
import { availableParallelism } from "node:os";
import { spawnNodeWorker } from "../../backends/wasm/workers.node.ts";
import type { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { type ChannelShares, DEFAULT_CHANNELS, uniformShares } from "../../compensation/settings.ts";
import { openWasm } from "../../ops/wasm.ts";
import { firstToken } from "../ownText.ts";
import { digest } from "../quantize/journal.node.ts";
import { floatDecoder } from "../quantize/plan.ts";
import { balancedCheckpoint } from "./balanced.ts";
import { channelEnergies, type Energies } from "./energies.ts";
import { scalableInputs } from "./inputs.ts";
import { channelScales } from "./scales.ts";

export interface BalanceOptions {
  /** Balances for a model that will be compensated, with these channels or the default ones. */
  readonly compensation?: { readonly channels?: ChannelShares };
  /** Threads that compute; the result does not depend on it. Default all cores. */
  readonly threads?: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Sequences that the model makes up, and tokens of each: 16 times as many gave the same. */
const SEQUENCES = 8;
const SEQUENCE_LENGTH = 64;
/** Of the ratio of inputs to weights: at 1/2 the error of white rounding is least. */
const EXPONENT = 0.5;
/**
 * For a model that will be compensated, both found by trial: the exponent, and how much of an input's energy counts
 * whatever compensation takes of it.
 */
const COMPENSATED = { exponent: 0.375, blend: 0.1 };

/**
 * A float model that computes the same, its channels scaled for data-free rounding by what the model itself makes up.
 * A model that is balanced already, or has nothing to scale, comes back as it is.
 * Throws a UsageError for a quantized model, a MemoryError for one too large to be run.
 *
 * @example
 * const checkpoint = await balanceCheckpoint(await openCheckpoint("./model"));
 */
export async function balanceCheckpoint(
  checkpoint: Checkpoint,
  options: BalanceOptions = {},
): Promise<Checkpoint> {
  const spec = floatDecoder(checkpoint);
  const inputs = scalableInputs(spec);
  if (checkpoint.balance || inputs.length === 0) return checkpoint;
  const { compensation, threads = availableParallelism(), onProgress, signal } = options;
  const sequenceLength = Math.min(SEQUENCE_LENGTH, spec.contextLength);
  const backend = await openWasm({ threads, spawn: spawnNodeWorker });
  let energies: Energies[];
  try {
    energies = await channelEnergies(inputs, {
      ...{ spec, checkpoint, backend, sequences: SEQUENCES, sequenceLength, first: firstToken(checkpoint) },
      ...{ onProgress, signal },
      compensation: compensation && {
        channels: compensation.channels ?? uniformShares(DEFAULT_CHANNELS),
        blend: COMPENSATED.blend,
      },
    });
  } finally {
    backend.dispose();
  }
  const exponent = compensation ? COMPENSATED.exponent : EXPONENT;
  const scales = inputs.map((input, i) => channelScales(input, energies[i], exponent));
  return balancedCheckpoint(checkpoint, spec, inputs, scales, {
    tokens: SEQUENCES * (sequenceLength - 1),
    exponent,
    digest: digest(...scales.map(({ buffer }) => new Uint8Array(buffer))),
  });
}
