import { quantizeCheckpoint } from "../engine/quantize/quantize.node.ts";
import { readTextFile, required } from "./files.ts";
import type { quantizeFlags } from "./flags.ts";
import { formatBytes, formatCount, formatSeconds, significant } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { openModel } from "./model.ts";
import { print, printJson } from "./output.ts";
import { progressLine } from "./progress.ts";
import type { Invocation } from "./verb.ts";

/** `halftone quantize`: a quantized copy of a model in a new folder. */
export async function quantize({ operands: [name], flags }: Invocation<typeof quantizeFlags>): Promise<void> {
  const folder = required(flags.output, "-o PATH");
  const texts = await Promise.all(flags.calibrate.map((file) => readTextFile(file, "--calibrate")));
  const checkpoint = await openModel(name);
  const line = progressLine(`quantizing ${name}`);
  const { scheme, embeddingScheme, noRotation, seed } = flags;
  const started = performance.now();
  const calibrate =
    texts.length > 0
      ? { texts, tokens: flags.calibrationTokens, sequential: !flags.noSequential }
      : undefined;
  try {
    const result = await quantizeCheckpoint(checkpoint, folder, {
      scheme,
      embeddingScheme,
      rotate: !noRotation,
      seed,
      calibrate,
      threads: flags.threads,
      resume: !flags.noResume,
      signal: interruptible(),
      onProgress: ({ phase, tensor, done, total }) => {
        const rate = (1000 * done) / (performance.now() - started);
        const doing = {
          round: `${formatCount(rate)} weights/s`,
          observe: `observing ${tensor}`,
          advance: tensor,
        };
        line.update(done, total, doing[phase]);
      },
    });
    line.clear();
    if (flags.json) return await printJson({ scheme, embeddingScheme, ...result });
    await print(
      `${folder}: ${scheme}, embedding ${embeddingScheme}\n` +
        `${formatCount(result.weights)} weights, ${significant(result.bitsPerWeight)} bits each over all tensors, ` +
        `${significant(result.linearBitsPerWeight)} in the linear layers\n` +
        `${formatBytes(result.bytesBefore)} before, ${formatBytes(result.bytesAfter)} after, in ${formatSeconds(result.seconds)}\n`,
    );
  } finally {
    line.clear();
    await checkpoint.close();
  }
}
