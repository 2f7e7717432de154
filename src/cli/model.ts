import type { ActivationPrecision, KeyValueType } from "../backends/operation.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { HubOptions } from "../checkpoint/hub/node.ts";
import type { ResidualStore } from "../compensation/residualFile.ts";
import { parseShares, type Selection } from "../compensation/settings.ts";
import type { GenerateOptions } from "../engine/generation.ts";
import type { Model } from "../engine/model.ts";
import { readTextFile } from "./files.ts";
import type { Values } from "./flag.ts";
import type { chatFlags } from "./flags.ts";
import { formatBytes } from "./format.ts";
import { remark } from "./output.ts";
import { during, withProgress } from "./progress.ts";

/** Tokens that tell enough of a layer's inputs. */
const PROFILE_TOKENS = 2048;

/** Runs hub work with its progress shown. */
export function withHubProgress<T>(
  label: string,
  work: (options: HubOptions) => Promise<T>,
  options: HubOptions = {},
): Promise<T> {
  return withProgress(label, (line) =>
    work({
      ...options,
      onProgress: ({ receivedBytes, totalBytes, bytesPerSecond }) =>
        line.update(
          receivedBytes,
          totalBytes,
          `${formatBytes(receivedBytes)} of ${formatBytes(totalBytes)}  ${formatBytes(bytesPerSecond)}/s`,
        ),
    }),
  );
}

export interface LoadFlags {
  readonly threads: number | undefined;
  readonly backend: "wasm" | "reference";
  readonly activations: ActivationPrecision;
  readonly kvCache: KeyValueType;
  readonly noCompensation: boolean;
  readonly channels: string | undefined;
  readonly select: Selection;
  readonly profile: string | undefined;
  readonly residualStore: ResidualStore;
  readonly context?: number;
  readonly chunk?: number;
  readonly policy?: string;
  /** Sequences side by side; default 1. */
  readonly sequences?: number;
}

/** Loads MODEL as the flags say. */
export async function loadModel(name: string, flags: LoadFlags): Promise<Model> {
  const { load } = await import("../node.ts");
  const { threads, backend, activations, kvCache, context, chunk, sequences, policy, select } = flags;
  const channels = flags.channels === undefined ? undefined : parseShares(flags.channels, "--channels");
  const compensation = flags.noCompensation
    ? (false as const)
    : { channels, select, store: flags.residualStore };
  const text = flags.profile === undefined ? undefined : await readTextFile(flags.profile, "--profile");
  const notices: string[] = [];
  let untuned = false;
  const onUntuned = () => {
    untuned = true;
  };
  const told = { policy, onUntuned, onNotice: (line: string) => notices.push(line) };
  const shape = { context, chunk, sequences, kvCache };
  const options = { threads, backend, activations, ...shape, compensation, ...told };
  const model = await withHubProgress(name, (hub) =>
    during(`loading ${name} ...`, () => load(name, { ...options, hub })),
  );
  for (const notice of notices) process.stderr.write(`${notice}\n`);
  if (untuned) await offerTuning(name);
  try {
    if (text !== undefined) await profileText(model, text);
    return model;
  } catch (error) {
    model.dispose();
    throw error;
  }
}

/** Once on a machine, to somebody who watches. */
async function offerTuning(name: string): Promise<void> {
  if (!process.stderr.isTTY) return;
  const { isFirstOffer } = await import("../mapping/store.node.ts");
  if (await isFirstOffer())
    remark(`"halftone tune ${name}" measures once which kernels are fastest on this machine`);
}

/** Shows a model the beginning of a text, as much as its context holds. */
async function profileText(model: Model, text: string): Promise<void> {
  const { profileInputs } = await import("../engine/profile.ts");
  const most = Math.min(PROFILE_TOKENS, model.context);
  // Tokens are seldom longer than this.
  await profileInputs(model, model.encodePrompt(text.slice(0, 16 * most)).slice(0, most));
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
