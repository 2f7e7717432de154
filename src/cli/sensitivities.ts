import { type ActualLoss, actualLosses } from "../engine/sensitivity/actual.node.ts";
import type { SensitivityProgress } from "../engine/sensitivity/measure.ts";
import type { Sensitivities } from "../engine/sensitivity/options.ts";
import { type SensitivityRun, sensitivities } from "../engine/sensitivity/sensitivities.node.ts";
import { UsageError } from "../errors.ts";
import { modelToRound, paletteOf } from "./budget.ts";
import { calibrationText } from "./calibrationText.ts";
import { checkWritable, writeJsonFile } from "./files.ts";
import type { sensitivitiesFlags } from "./flags.ts";
import { formatSeconds } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { openModel } from "./model.ts";
import { print, printJson, remark, table } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Invocation } from "./verb.ts";

const DOING: Readonly<Record<SensitivityProgress["phase"], string>> = {
  sample: "sampling text",
  measure: "measuring",
  gains: "calibration gains",
};

/** `halftone sensitivities`: how much each weight tensor matters. */
export async function sensitivitiesVerb({
  operands: [name],
  flags,
}: Invocation<typeof sensitivitiesFlags>): Promise<void> {
  const schemes = paletteOf(flags.losses);
  const text = await calibrationText(flags.calibrate);
  const { method, sequences, sequenceLength, norms, gains, bos, seed, threads, around } = flags;
  if (around !== undefined && schemes === undefined) {
    throw new UsageError("--around is for --losses SCHEME,...; name the schemes to measure");
  }
  await checkWritable(flags.output, "-o");
  const checkpoint = await openModel(name);
  try {
    // Gains are for calibrating, which takes the model as it is.
    const rounded = gains ? checkpoint : await modelToRound(checkpoint, flags);
    const { found, measured } = await withProgress("", async (line) => {
      const options: SensitivityRun = {
        ...{ method, sequences, sequenceLength, norms, gains, bos, seed, threads, signal: interruptible() },
        ...text,
        onProgress: ({ phase, done, total, secondsLeft }) => {
          if (phase === "measure" && done === 0)
            remark(`measuring takes about ${formatSeconds(secondsLeft)}`);
          line.update(done, total, DOING[phase]);
        },
      };
      return {
        found: await sensitivities(rounded, options),
        measured: schemes && (await actualLosses(rounded, schemes, { ...options, around })),
      };
    });
    const document = { ...found, ...(measured && { measured }) };
    if (flags.output !== undefined) {
      await writeJsonFile(flags.output, document, "-o");
      remark(`${flags.output} written`);
    }
    if (flags.json) return await printJson(document);
    await print(tableOf(found, measured, schemes ?? []));
  } finally {
    await checkpoint.close();
  }
}

function tableOf(
  { layers }: Sensitivities,
  measured: readonly ActualLoss[] | undefined,
  schemes: readonly string[],
): string {
  const withGains = layers.some(({ calibrationGain }) => calibrationGain !== undefined);
  const numbers = ["sensitivity", "error", ...(withGains ? ["calibrated"] : []), ...schemes];
  const rows = layers.map(({ name, sensitivity, standardError, calibrationGain = 1 }, i) => [
    name,
    sensitivity.toPrecision(4),
    standardError.toPrecision(2),
    ...(withGains ? [(sensitivity * calibrationGain).toPrecision(4)] : []),
    ...schemes.map((_, s) => measured![i * schemes.length + s].loss.toPrecision(4)),
  ]);
  return table(["tensor", ...numbers], rows, numbers);
}
