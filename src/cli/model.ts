import type { ActivationPrecision } from "../backends/operation.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { HubOptions } from "../checkpoint/hub/node.ts";
import type { GenerateOptions } from "../engine/generation.ts";
import type { Model } from "../engine/model.ts";
import type { Values } from "./flag.ts";
import type { chatFlags } from "./flags.ts";
import { formatBytes } from "./format.ts";
import { during, progressLine } from "./progress.ts";

/** Runs hub work with its progress shown. */
export async function withHubProgress<T>(
  label: string,
  work: (options: HubOptions) => Promise<T>,
  options: HubOptions = {},
): Promise<T> {
  const line = progressLine(label);
  try {
    return await work({
      ...options,
      onProgress: ({ receivedBytes, totalBytes, bytesPerSecond }) =>
        line.update(
          receivedBytes,
          totalBytes,
          `${formatBytes(receivedBytes)} of ${formatBytes(totalBytes)}  ${formatBytes(bytesPerSecond)}/s`,
        ),
    });
  } finally {
    line.clear();
  }
}

export interface LoadFlags {
  readonly threads: number | undefined;
  readonly backend: "wasm" | "reference";
  readonly activations: ActivationPrecision;
  readonly context?: number;
  readonly chunk?: number;
}

/** Loads MODEL as the flags say. */
export async function loadModel(name: string, flags: LoadFlags): Promise<Model> {
  const { load } = await import("../node.ts");
  const { threads, backend, activations, context, chunk } = flags;
  return withHubProgress(name, (hub) =>
    during(`loading ${name} ...`, () => load(name, { threads, backend, activations, context, chunk, hub })),
  );
}

/** Opens MODEL without loading it. */
export async function openModel(name: string): Promise<Checkpoint> {
  const { openCheckpoint } = await import("../checkpoint/open.node.ts");
  return withHubProgress(name, (hub) => openCheckpoint(name, { hub }));
}

/** How the flags ask for an answer. */
export function generateOptions(flags: Values<typeof chatFlags>): GenerateOptions {
  const { temperature, topK, topP, minP, repetitionPenalty, presencePenalty, frequencyPenalty } = flags;
  const { logitBias, seed, stop, maxTokens, speculate, draft } = flags;
  return {
    temperature,
    topK,
    topP,
    minP,
    repetitionPenalty,
    presencePenalty,
    frequencyPenalty,
    logitBias,
    seed,
    stop,
    maxTokens,
    speculate,
    draft,
  };
}
