import type { CalibrateOptions } from "../engine/calibrate/options.ts";
import { UsageError } from "../errors.ts";
import { readTextFile } from "./files.ts";

const FLAG = "--calibrate";

/**
 * The texts that `--calibrate` names; none for `own`, the text that the float model makes up itself. Undefined where
 * the flag is not given.
 */
export async function calibrationText(
  names: readonly string[],
): Promise<Pick<CalibrateOptions, "texts"> | undefined> {
  if (names.length === 0) return undefined;
  if (!names.includes("own")) {
    return { texts: await Promise.all(names.map((name) => readTextFile(name, FLAG))) };
  }
  if (names.length === 1) return {};
  throw new UsageError(
    `${FLAG} own is the model's own text instead of files; leave out one of the two (./own is a file of that name)`,
  );
}
