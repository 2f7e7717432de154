import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Choice } from "../budget/plan.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { CalibrateOptions } from "../engine/calibrate/options.ts";
import { type PerplexityOptions, type PerplexityResult, perplexity } from "../engine/perplexity.ts";
import { quantizeCheckpoint } from "../engine/quantize/quantize.node.ts";
import { load } from "../node.ts";

export interface MeasureOptions extends Pick<PerplexityOptions, "context" | "windows" | "bos" | "against"> {
  readonly text: string;
  readonly threads: number | undefined;
  readonly calibrate?: CalibrateOptions;
  readonly balance?: boolean;
  readonly signal?: AbortSignal;
}

/** Quantizes a checkpoint as a plan says, in a folder that is gone afterwards, and scores a text with it. */
export async function measureChoice(
  checkpoint: Checkpoint,
  choice: readonly Choice[],
  { text, threads, calibrate, balance, signal, ...options }: MeasureOptions,
): Promise<PerplexityResult & { readonly bytes: number }> {
  const folder = await mkdtemp(join(tmpdir(), "halftone-measure-"));
  try {
    const target = join(folder, "model");
    const run = { scheme: "f32", choice, calibrate, balance, threads, signal };
    const { fileBytes } = await quantizeCheckpoint(checkpoint, target, run);
    const model = await load(target, { threads, context: options.context });
    try {
      return { bytes: fileBytes, ...(await perplexity(model, text, { ...options, signal })) };
    } finally {
      model.dispose();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
