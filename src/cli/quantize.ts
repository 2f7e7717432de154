import { existsSync } from "node:fs";
import { type ModelPlan, parseModelPlan } from "../budget/modelPlan.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { partialOf, requireFree } from "../checkpoint/outputFolder.node.ts";
import { blendOf, parseShares } from "../compensation/settings.ts";
import type { CalibrateOptions, CompensatedCalibration } from "../engine/calibrate/options.ts";
import { checkFits } from "../engine/planning/fit.ts";
import type { ModelBudget } from "../engine/planning/problem.ts";
import { quantizeCheckpoint } from "../engine/quantize/quantize.node.ts";
import type { TuneOptions, TuneResult } from "../engine/tuning/options.ts";
import { UsageError } from "../errors.ts";
import type { ResidualBits } from "../quantizers/residual.ts";
import { parseScheme } from "../quantizers/scheme.ts";
import { budgetOf } from "./budget.ts";
import { calibrationText } from "./calibrationText.ts";
import { readJsonFile, readTextFile, required } from "./files.ts";
import type { Values } from "./flag.ts";
import type { quantizeFlags } from "./flags.ts";
import { formatBytes, formatCount, formatSeconds, significant } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { openModel } from "./model.ts";
import { print, printJson, remark } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** `halftone quantize`: a quantized copy of a model in a new folder. */
export async function quantize({ operands: [name], flags }: Invocation<typeof quantizeFlags>): Promise<void> {
  const folder = required(flags.output, "-o PATH");
  const budget = spentBudget(flags);
  const text = await calibrationText(flags.calibrate);
  const { forCompensation } = flags;
  const channels =
    forCompensation === undefined ? undefined : parseShares(forCompensation, "--for-compensation");
  if (channels && (!text || flags.residual === "none")) {
    throw new UsageError("--for-compensation needs --calibrate and --residual BITS");
  }
  if (flags.blend !== undefined && !channels) {
    throw new UsageError("--blend needs --for-compensation N");
  }
  const tune = await tuning(flags);
  await requireFree(folder);
  const checkpoint = await openModel(name);
  const { scheme, embeddingScheme, noRotation, noBalance, seed } = flags;
  const signal = interruptible();
  try {
    const { plan, measured } = await planOf(checkpoint, budget, flags);
    const bits = plan?.predicted.linearBits ?? parseScheme(scheme).bits;
    const compensation = channels && { channels, blend: flags.blend ?? blendOf(bits) };
    const bought = plan?.compensation;
    const residual = flags.residual === "none" ? bought?.bits : (Number(flags.residual) as ResidualBits);
    // A model that gets a residual is balanced in another way than the one that was measured: from the original.
    const result = await withProgress(`quantizing ${name}`, (line) =>
      quantizeCheckpoint(residual === undefined ? measured : checkpoint, folder, {
        scheme,
        embeddingScheme,
        choice: plan?.choice,
        rotate: !noRotation,
        balance: noBalance ? false : undefined,
        seed,
        calibrate: text && calibration(text, compensation, flags),
        tune,
        residual,
        channels: bought?.channels,
        threads: flags.threads,
        resume: !flags.noResume,
        signal,
        onNotice: remark,
        onProgress: ({ phase, tensor, done, total, weightsPerSecond, secondsLeft }) => {
          if (phase === "tune" && tensor === "") {
            return remark(`tuning will take about ${formatSeconds(secondsLeft!)} after quantizing`);
          }
          const doing = {
            balance: "balancing",
            round: weightsPerSecond ? `${formatCount(weightsPerSecond)} weights/s` : tensor,
            gradients: `gradients ${tensor}`,
            observe: `observing ${tensor}`,
            advance: tensor,
            residual: `residual of ${tensor}`,
            sample: tensor,
            tune: `tuning, ${tensor}`,
          };
          line.update(done, total, doing[phase], secondsLeft);
        },
      }),
    );
    const schemes = plan ? { plan } : { scheme, embeddingScheme };
    if (flags.json) return await printJson({ ...schemes, ...result });
    await print(
      `${folder}: ${plan ? planned(plan) : `${scheme}, embedding ${embeddingScheme}`}${result.balanced ? ", balanced" : ""}\n` +
        `${formatCount(result.weights)} weights, ${significant(result.bitsPerWeight)} bits each over all tensors, ` +
        `${significant(result.linearBitsPerWeight)} in the linear layers\n` +
        `${formatBytes(result.bytesBefore)} before, ${formatBytes(result.bytesAfter)} after, in ${formatSeconds(result.seconds)}\n` +
        (result.residualBytes === undefined ? "" : `residual: ${formatBytes(result.residualBytes)}\n`) +
        (result.tuning === undefined ? "" : `${tuned(result.tuning)}\n`),
    );
  } catch (error) {
    const partial = partialOf(folder);
    if (signal.aborted && existsSync(partial)) {
      process.stderr.write(
        `halftone: stopped; ${partial} keeps what is done, and the same command goes on from there\n`,
      );
    }
    throw error;
  } finally {
    await checkpoint.close();
  }
}

/** The budget that the flags give; refuses one beside a plan, and what is for a budget without one. */
function spentBudget(flags: Values<typeof quantizeFlags>): ModelBudget | undefined {
  const budget = budgetOf(flags);
  if (budget !== undefined) {
    if (flags.plan === undefined) return budget;
    throw new UsageError("--plan spends a budget already; leave out one of the two");
  }
  const idle = (["rows", "schemes", "sensitivities", "remeasure"] as const).find((each) => flags[each]);
  if (idle === undefined) return undefined;
  throw new UsageError(`--${idle} needs a budget to spend; give --bits N, --memory SIZE or --speed N`);
}

/** The plan that the flags name, or one made for the budget that they give. */
async function planOf(
  checkpoint: Checkpoint,
  budget: ModelBudget | undefined,
  flags: Invocation<typeof quantizeFlags>["flags"],
): Promise<{ readonly plan?: ModelPlan; readonly measured: Checkpoint }> {
  if (flags.plan === undefined) {
    if (budget === undefined) return { measured: checkpoint };
    const { makePlan } = await import("./planModel.ts");
    return makePlan(checkpoint, budget, flags);
  }
  const value = await readJsonFile(flags.plan, "--plan", "docs/planning.md");
  try {
    const plan = parseModelPlan(value);
    await checkFits(plan, checkpoint);
    return { plan, measured: checkpoint };
  } catch (cause) {
    if (cause instanceof UsageError)
      throw new UsageError(`--plan ${flags.plan}: ${cause.message}`, { cause });
    throw cause;
  }
}

function calibration(
  text: Pick<CalibrateOptions, "texts">,
  compensation: CompensatedCalibration | undefined,
  { calibrationTokens: tokens, gradientTokens, bos, noSequential }: Values<typeof quantizeFlags>,
): CalibrateOptions {
  const options = { ...text, tokens, gradientTokens, bos };
  return compensation ? { ...options, compensation } : { ...options, sequential: !noSequential };
}

async function tuning({
  tuneSteps: steps,
  tuneTokens: tokens,
  tuneText,
  bos,
  residual,
  rows,
}: Values<typeof quantizeFlags>): Promise<TuneOptions | undefined> {
  if (steps === undefined) {
    if (tokens === undefined && tuneText.length === 0) return undefined;
    throw new UsageError(`${tokens === undefined ? "--tune-text" : "--tune-tokens"} needs --tune-steps N`);
  }
  if (residual !== "none" || rows) {
    const other = rows ? "--rows" : "--residual";
    throw new UsageError(
      `--tune-steps and ${other} exclude each other: tuned norms do not fit the original weights that residual rows restore`,
    );
  }
  const texts = await Promise.all(tuneText.map((file) => readTextFile(file, "--tune-text")));
  return { steps, tokens, bos, texts: texts.length > 0 ? texts : undefined };
}

function tuned({ divergenceBefore, divergenceAfter, bestStep, heldOutTokens }: TuneResult): string {
  const from = significant(divergenceBefore);
  if (bestStep === 0) return `tuning found nothing better: divergence from the float model ${from}`;
  return `tuned: divergence from the float model ${from} before, ${significant(divergenceAfter)} after, on ${heldOutTokens} tokens held out`;
}

function planned({ choice, predicted }: ModelPlan): string {
  const schemes = new Set(choice.map(({ option }) => option));
  return `${schemes.size} schemes as planned, predicted loss ${Number(predicted.loss.toPrecision(3))}`;
}
